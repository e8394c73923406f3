package org.apache.spark.sql.tailrace.sink.dedup

import java.util.{HashMap => JHashMap}

import scala.collection.mutable

import org.apache.spark.sql.tailrace.origin.{RowId, SourcePartition}

/** The rows of one record that are in the output and that no replayed row has been matched with yet. */
final class RecordRows {
  import RecordRows._

  private val rows = mutable.ArrayBuffer.empty[Row]

  def isEmpty: Boolean = rows.isEmpty

  /** Removes the row with this ordinal and returns its content hash. */
  def takeOrdinal(ordinal: Int): Option[Long] = {
    val found = rows.indexWhere(_.ordinal == ordinal)
    Option.when(found >= 0)(rows.remove(found).contentHash)
  }

  /** Removes a row with this content; false if there is none. */
  def takeContent(contentHash: Long): Boolean = {
    val found = rows.indexWhere(_.contentHash == contentHash)
    if (found >= 0) {
      rows.remove(found)
    }
    found >= 0
  }

  /** Removes the oldest row; false if there is none. */
  def takeAny(): Boolean = {
    val found = rows.nonEmpty
    if (found) {
      rows.remove(0)
    }
    found
  }

  /** If the output holds two versions of a row, the later one counts. */
  private[dedup] def put(ordinal: Int, contentHash: Long): Unit = {
    rows.filterInPlace(_.ordinal != ordinal)
    rows += Row(ordinal, contentHash)
  }
}

object RecordRows {
  private final case class Row(ordinal: Int, contentHash: Long)
  private[dedup] val none = new RecordRows
}

/** Looks up what the output already holds of the records that a task replays. Each row is matched once. */
final class WrittenRowIndex(written: WrittenRows) {
  private final class PartitionRows {
    val records = mutable.HashMap.empty[(Long, Long), RecordRows]
    val lastOffsets = mutable.LongMap.empty[Long]
  }
  private val byPartition = new JHashMap[SourcePartition, PartitionRows]

  /** The unmatched rows of the record, and of the path through the shuffles, that `row` belongs to. */
  def rowsOf(source: SourcePartition, row: RowId): RecordRows =
    rowsOf(source).records.getOrElse((row.offset, row.path), RecordRows.none)

  /**
   * True if the output holds a row of this key made from a later record of the same partition. Rows of a partition are
   * written in order, so an earlier row that is missing now was there once: Kafka has compacted the topic.
   */
  def hasLater(source: SourcePartition, offset: Long, keyHash: Long): Boolean =
    rowsOf(source).lastOffsets.get(keyHash).exists(_ > offset)

  // Built on first use: a task sees rows of few partitions.
  private def rowsOf(source: SourcePartition): PartitionRows = byPartition.computeIfAbsent(source, _ => index(source))

  private def index(source: SourcePartition): PartitionRows = {
    val found = new PartitionRows
    written.bySource(source).foreach { written =>
      val row = written.row
      found.records.getOrElseUpdate((row.offset, row.path), new RecordRows).put(row.ordinal, written.contentHash)
      val last = found.lastOffsets.getOrElse(written.keyHash, -1L)
      found.lastOffsets.update(written.keyHash, math.max(row.offset, last))
    }
    found
  }
}
