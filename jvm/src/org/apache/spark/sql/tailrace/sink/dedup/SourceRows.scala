package org.apache.spark.sql.tailrace.sink.dedup

import scala.collection.mutable

import org.apache.spark.sql.tailrace.origin.RowId

/** @param isInOrder false if a row of the same key, made from an older record, follows it in the output */
private[dedup] final case class RecordRow(ordinal: Int, contentHash: Long, isInOrder: Boolean)

/** The rows of one record that are in the output and that no replayed row has been matched with yet. */
private[dedup] final class RecordRows {
  private val rows = mutable.ArrayBuffer.empty[RecordRow]
  private val ordinals = mutable.BitSet.empty

  def isEmpty: Boolean = rows.isEmpty

  /** Removes a row with this content. */
  def takeContent(contentHash: Long): Option[RecordRow] = take(rows.indexWhere(_.contentHash == contentHash))

  /** Removes the oldest row. */
  def takeAny(): Option[RecordRow] = take(if (rows.isEmpty) -1 else 0)

  private def take(position: Int): Option[RecordRow] = Option.when(position >= 0)(rows.remove(position))

  /** Takes an ordinal that no row of the record has: this one, if possible. */
  def freeOrdinal(wanted: Int): Int = {
    val free = if (ordinals(wanted)) Iterator.from(0).find(!ordinals(_)).get else wanted
    if (ordinals.nonEmpty) {
      ordinals += free
    }
    free
  }

  /** If the output holds two versions of a row, the later one counts. */
  def put(row: RecordRow): Unit = {
    rows.filterInPlace(_.ordinal != row.ordinal)
    rows += row
    ordinals += row.ordinal
  }
}

/** What the output holds of the records of one source partition. */
private[dedup] final class SourceRows(written: Array[WrittenRow]) {
  private val records = mutable.HashMap.empty[(Long, Long), RecordRows]
  private val lastOffsets = mutable.LongMap.empty[Long]
  private val none = new RecordRows

  /** The last record of the partition that any row was made from; -1 if there is none. */
  val lastOffset: Long = written.iterator.map(_.row.offset).maxOption.getOrElse(-1L)

  index()

  /** The unmatched rows of the record, and of the path through the shuffles, that `row` belongs to. */
  def of(row: RowId): RecordRows = records.getOrElse((row.offset, row.path), none)

  /** True if the output holds a row of this key made from a later record. */
  def hasLater(offset: Long, keyHash: Long): Boolean = lastOffsets.get(keyHash).exists(_ > offset)

  private def index(): Unit = {
    val inOrder = rowsInOrder()
    written.foreach { found =>
      val row = found.row
      records.getOrElseUpdate((row.offset, row.path), new RecordRows)
        .put(RecordRow(row.ordinal, found.contentHash, inOrder(found.at)))
      lastOffsets.update(found.keyHash, math.max(row.offset, lastOffsets.getOrElse(found.keyHash, -1L)))
    }
  }

  /** The positions of rows that no row of the same key, task and an older record follows. */
  private def rowsInOrder(): mutable.HashSet[OutputPosition] = {
    val inOrder = mutable.HashSet.empty[OutputPosition]
    for (ofTask <- written.groupBy(_.mark.task).values; ofKey <- WrittenRows.histories(ofTask.iterator).values) {
      ofKey.foldRight(Long.MaxValue) { (row, oldestAfter) =>
        if (row.row.offset <= oldestAfter) {
          inOrder += row.at
        }
        math.min(oldestAfter, row.row.offset)
      }
    }
    inOrder
  }
}
