package org.apache.spark.sql.tailrace.sink.kafka

private[kafka] object Offsets {

  /** Offsets in output topics, by topic and partition, in the form in which [[OutputLog]] stores them. */
  type OutputOffsets = Map[String, Map[String, Long]]

  /** Offsets in the query's sources, by topic and partition. */
  type SourceOffsets = Map[(String, Int), Long]

  val NoOutput: OutputOffsets = Map.empty
  val NoSource: SourceOffsets = Map.empty

  /** True if any record is at or after the start offsets. */
  def anyAtOrAfter(records: SourceOffsets, starts: SourceOffsets): Boolean =
    records.exists { case (partition, offset) => starts.get(partition).forall(_ <= offset) }

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
