package org.apache.spark.sql.tailrace.origin

import scala.collection.mutable

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.InternalRow

/**
 * Behind a shuffle, rows of different partitions of a source come in another order each time, and a stateful operator
 * says something else of each of them. When an epoch is repeated, this puts the rows of which something was written before
 * into the order in which they came then, and the others behind them, so that the operator says the same again.
 *
 * A row that has not come yet is waited for, unless a later one of the same partition of the source is here already: then it
 * hardly comes any more. Rows that wait are kept in memory.
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
  private val newest = mutable.HashMap.empty[SourceId, Long]
  private val places = mutable.LongMap.empty[SourceId]
  private var position = 0
  private var isInOrder = false

  override def hasNext: Boolean = {
    while (ready.isEmpty && !isInOrder) {
      if (rows.hasNext) sort(rows.next()) else release()
    }
    ready.nonEmpty || rows.hasNext
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
    if (current.place < 0) {
      others.enqueue(kept)
    } else {
      val place = placeOf(current.place)
      newest(place) = current.offset
      val key = RowKey(place, current.offset, current.path)
      if (expected.remove(key)) early(key) = kept else others.enqueue(kept)
    }
    while (position < order.length && (early.contains(order(position)) || hardlyComes(order(position)))) {
      ready ++= early.remove(order(position))
      // If it does come, on another way through several shuffles, it is one of the others.
      expected.remove(order(position))
      position += 1
    }
    if (position == order.length) {
      release()
    }
  }

  private def hardlyComes(key: RowKey): Boolean = newest.get(key.place).exists(_ > key.offset)

  /** All that wait, in the best order that is left. */
  private def release(): Unit = {
    ready ++= order.iterator.drop(position).flatMap(early.remove)
    ready ++= others
    others.clear()
    isInOrder = true
  }

  private def placeOf(index: Int): SourceId = places.getOrElseUpdate(
    index, {
      val place = current.places(index).get
      SourceId(current.places.sourceOf(index), place.topic, place.partition)
    })
}

private[tailrace] object ReplayOrder {
  private final class Kept(val row: InternalRow, val origin: Origin)

  def apply(rows: Iterator[InternalRow], current: CurrentRow, replayed: ReplayedRows): Iterator[InternalRow] = {
    val distinct = replayed.ofTask(TaskContext.getPartitionId()).toArray.distinct
    if (distinct.isEmpty) rows else new ReplayOrder(rows, current, distinct)
  }
}
