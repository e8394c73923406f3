package org.apache.spark.sql.tailrace.origin

import scala.collection.mutable

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.InternalRow

/**
 * Restores the order of replayed rows behind a shuffle. Rows of different source partitions leave a shuffle in another
 * order each time, and a stateful operator then makes something else of each of them. When an epoch is replayed, the
 * rows whose results are in the output come first, in their first order, and all others after them. So the operator
 * makes the same results again. A row without a result may have changed the state all the same, so the rows of a source
 * partition keep their order: such a row comes before the next known one of its partition.
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
  private val others = mutable.HashMap.empty[SourcePartition, mutable.Queue[Kept]]
  private val ofUnknownOrigin = mutable.Queue.empty[Kept]
  private val ready = mutable.Queue.empty[Kept]
  private val newestOffsets = mutable.HashMap.empty[SourcePartition, Long]
  private var arrived = 0L
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
    val kept = new Kept(row.copy(), current.keep(), current.offset, arrived)
    arrived += 1
    if (current.partitionIndex < 0) {
      ofUnknownOrigin.enqueue(kept)
    } else {
      val source = current.partitions(current.partitionIndex)
      newestOffsets(source) = current.offset
      val key = RowKey(source, current.offset, current.path)
      if (expected.remove(key)) early(key) = kept
      else others.getOrElseUpdate(source, mutable.Queue.empty).enqueue(kept)
    }
    while (position < order.length && (early.contains(order(position)) || isOverdue(order(position)))) {
      release(order(position))
      // It can still arrive on a slower way through several shuffles. It is one of the others then.
      expected.remove(order(position))
      position += 1
    }
    if (position == order.length) {
      releaseAll()
    }
  }

  /** Passes a known row on, if it has arrived, behind those that were before it in its source partition. */
  private def release(key: RowKey): Unit = early.remove(key).foreach { kept =>
    others.get(key.source).foreach(ofSource => ready ++= ofSource.dequeueWhile(_.offset < key.offset))
    ready += kept
  }

  private def isOverdue(key: RowKey): Boolean = newestOffsets.get(key.source).exists(_ > key.offset)

  /** Releases all rows that wait, in the best order that is left. */
  private def releaseAll(): Unit = {
    order.iterator.drop(position).foreach(release)
    ready ++= (others.values.flatten ++ ofUnknownOrigin).toSeq.sortBy(_.arrived)
    others.clear()
    ofUnknownOrigin.clear()
    isInOrder = true
  }
}

private[tailrace] object ReplayOrder {
  /** @param arrived counts the rows as they come */
  private final class Kept(val row: InternalRow, val origin: Origin, val offset: Long, val arrived: Long)

  def apply(rows: Iterator[InternalRow], current: CurrentRow, replayed: ReplayedRows): Iterator[InternalRow] = {
    new ReplayOrder(rows, current, replayed.ofTask(TaskContext.getPartitionId()).toArray.distinct)
  }
}
