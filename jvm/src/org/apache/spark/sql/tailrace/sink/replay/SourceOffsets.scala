package org.apache.spark.sql.tailrace.sink.replay

import org.apache.spark.sql.tailrace.origin.SourcePartition

private[sink] object SourceOffsets {

  /** Offsets in the query's sources. */
  type SourceOffsets = Map[SourcePartition, Long]

  val NoSource: SourceOffsets = Map.empty

  /** True if an epoch with these start offsets reads any of the records. It reads only partitions that have one. */
  def anyAtOrAfter(records: SourceOffsets, starts: SourceOffsets): Boolean =
    records.exists { case (partition, offset) => isAtOrAfter(partition, offset, starts) }

  def isAtOrAfter(partition: SourcePartition, offset: Long, starts: SourceOffsets): Boolean =
    starts.get(partition).exists(_ <= offset)
}

/**
 * The records that a run can read again: those that were in its sources when it started, from the offsets on at which
 * its first epoch starts. A row of the output that was made from any other record is never replayed: the partition or
 * the record is gone, or another query wrote the row.
 *
 * @param starts by partition that the run reads, the first offset
 * @param ends   by partition that exists, the last record
 */
private[sink] final case class ReadableRecords(starts: SourceOffsets.SourceOffsets, ends: SourceOffsets.SourceOffsets) {
  def contain(partition: SourcePartition, offset: Long): Boolean =
    SourceOffsets.isAtOrAfter(partition, offset, starts) && ends.get(partition).exists(_ >= offset)
}
