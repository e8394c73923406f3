package org.apache.spark.sql.tailrace.origin

import scala.collection.mutable

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.InternalRow

/**
 * Restores the order of replayed rows behind a shuffle. Rows of different source partitions leave a shuffle in another
 * order each time, and a stateful operator then makes something else of each of them. When an epoch is replayed, the
 * rows whose results are in the output come first, in their first order, and all others after them. So the operator
 * makes the same results again.
 *
 * A row is waited for until a later row of the same source partition has arrived: after that it is not expected any
 * more. Rows that wait are kept in memory.
 */
private[tailrace] final class ReplayOrder(
    rows: Iterator[InternalRow],
    current: CurrentRow,
    order: Array[RowKey])
    extends Iterator[InternalRow] {
  import ReplayOrder._

  private val expected = mutable.HashSet.empty[RowKey] ++ order
  private val early = mutable.HashMap.empty[RowKey, Kept]
  private val others = mutable.Queue.empty[Kept]
  private val ready = mutable.Queue.empty[Kept]
  private val newestOffsets = mutable.HashMap.empty[SourcePartition, Long]
  private var position = 0
  private var isInOrder = order.isEmpty
  current.expectsRows = !isInOrder

  override def hasNext: Boolean = {
    while (ready.isEmpty && !isInOrder) {
      if (rows.hasNext) sort(rows.next()) else releaseAll()
    }
    ready.nonEmpty || hasAnother
  }

  /** To be asked when all known rows have been passed on. */
  private def hasAnother: Boolean = {
    current.expectsRows = false
    val another = rows.hasNext
    // The end of an epoch makes rows as well.
    current.expectsRows = !another
    another
  }

  override def next(): InternalRow =
    if (!hasNext) {
      throw new NoSuchElementException
    } else if (ready.nonEmpty) {
      val kept = ready.dequeue()
      current.restore(kept.origin)
      kept.row
    } else {
      rows.next()
    }

  private def sort(row: InternalRow): Unit = {
    val kept = new Kept(row.copy(), current.keep())
    if (current.partitionIndex < 0) {
      others.enqueue(kept)
    } else {
      val source = current.partitions(current.partitionIndex)
      newestOffsets(source) = current.offset
      val key = RowKey(source, current.offset, current.path)
      if (expected.remove(key)) early(key) = kept else others.enqueue(kept)
    }
    while (position < order.length && (early.contains(order(position)) || isOverdue(order(position)))) {
      ready ++= early.remove(order(position))
      // It can still arrive on a slower way through several shuffles. It is one of the others then.
      expected.remove(order(position))
      position += 1
    }
    if (position == order.length) {
      releaseAll()
    }
  }

  private def isOverdue(key: RowKey): Boolean = newestOffsets.get(key.source).exists(_ > key.offset)

  /** Releases all rows that wait, in the best order that is left. */
  private def releaseAll(): Unit = {
    ready ++= order.iterator.drop(position).flatMap(early.remove)
    ready ++= others
    others.clear()
    isInOrder = true
  }
}

private[tailrace] object ReplayOrder {
  private final class Kept(val row: InternalRow, val origin: Origin)

  def apply(rows: Iterator[InternalRow], current: CurrentRow, replayed: ReplayedRows): Iterator[InternalRow] = {
    new ReplayOrder(rows, current, replayed.ofTask(TaskContext.getPartitionId()).toArray.distinct)
  }
}
