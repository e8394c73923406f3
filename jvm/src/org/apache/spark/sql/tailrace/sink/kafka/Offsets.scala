package org.apache.spark.sql.tailrace.sink.kafka

private[kafka] object Offsets {

  /** Offsets in output topics, by topic and partition, in the form in which [[OutputLog]] stores them. */
  type OutputOffsets = Map[String, Map[String, Long]]

  val NoOutput: OutputOffsets = Map.empty

  /** Of each partition that both know, the earlier offset. The others are left to be read from their beginning. */
  def earlier(some: OutputOffsets, others: OutputOffsets): OutputOffsets =
    some.flatMap { case (topic, offsets) =>
      others.get(topic).map { known =>
        topic -> offsets.collect {
          case (partition, offset) if known.contains(partition) =>
            partition -> math.min(offset, known(partition))
        }
      }
    }

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
