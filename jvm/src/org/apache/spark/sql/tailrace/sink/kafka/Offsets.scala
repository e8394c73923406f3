package org.apache.spark.sql.tailrace.sink.kafka

import org.apache.spark.sql.tailrace.origin.SourcePartition

private[kafka] object Offsets {

  /** Offsets in output topics, by topic and partition, in the form in which [[OutputLog]] stores them. */
  type OutputOffsets = Map[String, Map[String, Long]]

  /** Offsets in the query's sources. */
  type SourceOffsets = Map[SourcePartition, Long]

  val NoOutput: OutputOffsets = Map.empty
  val NoSource: SourceOffsets = Map.empty

  /** True if an epoch with these start offsets reads any of the records. It reads only partitions that have one. */
  def anyAtOrAfter(records: SourceOffsets, starts: SourceOffsets): Boolean =
    records.exists { case (partition, offset) => isAtOrAfter(partition, offset, starts) }

  def isAtOrAfter(partition: SourcePartition, offset: Long, starts: SourceOffsets): Boolean =
    starts.get(partition).exists(_ <= offset)

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

/**
 * The records that a run can read again: those that were in its sources when it started, from the offsets on at which
 * its first epoch starts. A row of the output that was made from any other record is never replayed: the partition or
 * the record is gone, or another query wrote the row.
 *
 * @param starts by partition that the run reads, the first offset
 * @param ends   by partition that exists, the last record
 */
private[kafka] final case class ReadableRecords(starts: Offsets.SourceOffsets, ends: Offsets.SourceOffsets) {
  def contain(partition: SourcePartition, offset: Long): Boolean =
    Offsets.isAtOrAfter(partition, offset, starts) && ends.get(partition).exists(_ >= offset)
}
