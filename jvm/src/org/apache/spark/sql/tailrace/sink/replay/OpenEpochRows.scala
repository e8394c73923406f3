package org.apache.spark.sql.tailrace.sink.replay

import org.apache.spark.sql.tailrace.sink.dedup.{WrittenRow, WrittenRows}
import org.apache.spark.sql.tailrace.sink.replay.SourceOffsets.SourceOffsets

/**
 * Tells the rows of an epoch that is open from those of epochs that were committed. A read-back finds some of the
 * latter where epochs overlapped: the first rows of one stand among the last rows of the one before.
 *
 * @param starts by source partition, the first record of the epoch
 */
private[sink] final case class OpenEpochRows(epoch: Long, starts: SourceOffsets) {

  /**
   * Without the committed rows of a key up to the first one that can be replayed. What stands behind that one is kept:
   * it tells what the last record of the key is.
   */
  def rowsAmong(rows: Seq[WrittenRow]): Seq[WrittenRow] =
    WrittenRows.histories(WrittenRows.inOrderOfWriting(rows).iterator).values.flatMap(_.dropWhile(isCommitted)).toSeq

  /** Of a partition that is not read any more, nothing is known. */
  private def isCommitted(row: WrittenRow): Boolean =
    if (row.source.isMadeByTime) row.row.offset < epoch else starts.get(row.source).exists(_ > row.row.offset)
}
