package org.apache.spark.sql.tailrace.sink

import org.apache.spark.sql.tailrace.origin.{CurrentRow, Ordinals, RowId, SourcePartition}

/** Identifies the rows that a task writes, by the record that each was made from. */
private[sink] final class RowIds(val current: CurrentRow, task: Int, epoch: Long) {
  private val ordinals = new Ordinals(current)
  private var timed = 0L

  /** How many rows time has made. */
  def madeByTime: Long = timed

  /** To be called once for each row. */
  def ofNext[T](row: (SourcePartition, RowId) => T): T =
    if (current.partitionIndex >= 0 && current.offset >= 0) {
      row(current.partitions(current.partitionIndex), RowId(current.offset, current.path, ordinals.next()))
    } else {
      timed += 1
      row(SourcePartition.madeByTime(task), RowId.madeByTime(epoch))
    }
}
