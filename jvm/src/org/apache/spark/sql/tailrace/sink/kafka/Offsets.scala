package org.apache.spark.sql.tailrace.sink.kafka

private[kafka] object Offsets {

  /** Offsets in output topics, by topic and partition, in the form in which [[OutputLog]] stores them. */
  type OutputOffsets = Map[String, Map[String, Long]]

  val NoOutput: OutputOffsets = Map.empty

  /** The later offset of each partition. */
  def later(some: OutputOffsets, others: OutputOffsets): OutputOffsets =
    others.foldLeft(some) { case (all, (topic, offsets)) =>
      val known = all.getOrElse(topic, Map.empty)
      all.updated(
        topic,
        known ++ offsets.map { case (partition, offset) =>
          partition -> math.max(offset, known.getOrElse(partition, 0L))
        })
    }
}
