package org.apache.spark.sql.tailrace.origin

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow
import org.apache.spark.sql.connector.read.InputPartition

class ReplayOrderSuite extends munit.FunSuite {
  private val a = 0
  private val b = 1

  test("rows come in the order of the first attempt") {
    val rows = replay(order = Seq(at(a, 0), at(b, 0), at(a, 1)))(at(b, 0), at(a, 0), at(a, 1))
    assertEquals(rows, Seq(at(a, 0), at(b, 0), at(a, 1)))
  }

  test("rows that were not written before come last, in the order in which they arrive") {
    val rows = replay(order = Seq(at(a, 1), at(b, 3)))(at(b, 3), at(b, 4), at(a, 1), at(a, 2), at(b, 5))
    assertEquals(rows, Seq(at(a, 1), at(b, 3), at(b, 4), at(a, 2), at(b, 5)))
  }

  test("a row that left no result may have changed the state, so it keeps its place in its partition") {
    val rows = replay(order = Seq(at(a, 3), at(b, 3)))(at(b, 2), at(a, 1), at(b, 3), at(a, 2), at(a, 3), at(b, 4))
    assertEquals(rows, Seq(at(a, 1), at(a, 2), at(a, 3), at(b, 2), at(b, 3), at(b, 4)))
  }

  test("it does so if a known row never comes") {
    val rows = replay(order = Seq(at(b, 9), at(a, 3)))(at(a, 1), at(a, 3), at(a, 4))
    assertEquals(rows, Seq(at(a, 1), at(a, 3), at(a, 4)))
  }

  test("a row is not waited for once a later one of its partition has come") {
    val arrivals = new Arrivals(at(b, 0), at(a, 1), at(a, 2))
    val replayed = ordered(arrivals, Seq(at(a, 0), at(b, 0)))
    replayed.next()
    assertEquals(arrivals.where, at(b, 0))
    assertEquals(arrivals.taken, 2)
  }

  test("a row that comes after all is passed on behind the others") {
    // Two rows of one record: the second shuffle of one of them took longer.
    val rows = replay(order = Seq(at(a, 0, path = 1), at(a, 0, path = 2)))(
      at(a, 0, path = 2),
      at(a, 1),
      at(a, 0, path = 1))
    assertEquals(rows, Seq(at(a, 0, path = 2), at(a, 1), at(a, 0, path = 1)))
  }

  test("the end of the input releases what waits") {
    val rows = replay(order = Seq(at(a, 0), at(b, 0), at(b, 1)))(at(b, 1), at(b, 0))
    assertEquals(rows, Seq(at(b, 0), at(b, 1)))
  }

  test("rows of unknown origin come last") {
    val rows = replay(order = Seq(at(a, 0)))(Unknown, at(a, 0))
    assertEquals(rows, Seq(at(a, 0), Unknown))
  }

  test("rows pass through one by one once the order is restored") {
    val arrivals = new Arrivals(at(a, 0), at(a, 1), at(a, 2), at(a, 3))
    val replayed = ordered(arrivals, Seq(at(a, 0)))
    replayed.next()
    assertEquals(arrivals.taken, 1)
    replayed.next()
    assertEquals(arrivals.taken, 2)
  }

  test("it tells whether known rows can still come") {
    val arrivals = new Arrivals(at(b, 0), at(a, 0), at(a, 1))
    val replayed = ordered(arrivals, Seq(at(a, 0), at(b, 0)))
    def expectsRows = arrivals.current.expectsRows
    assert(expectsRows)
    replayed.next()
    assert(expectsRows)
    replayed.next()
    assert(expectsRows)
    assert(replayed.hasNext)
    assert(!expectsRows)
    replayed.next()
    // The epoch ends, and makes rows as well.
    assert(!replayed.hasNext)
    assert(expectsRows)
  }

  test("without a known row none is expected before the end") {
    val arrivals = new Arrivals(at(a, 0))
    val replayed = ordered(arrivals, Nil)
    assert(!arrivals.current.expectsRows)
    assertEquals(replayed.toSeq.length, 1)
    assert(arrivals.current.expectsRows)
  }

  test("an empty input ends") {
    assertEquals(replay(order = Seq(at(a, 0)))(), Nil)
    intercept[NoSuchElementException](ordered(new Arrivals(), Seq(at(a, 0))).next())
  }

  /** Where a row came from. Its only column has the same in one number, so that a mix-up shows. */
  private case class At(partition: Int, offset: Long, path: Long) {
    def number: Long = partition * 1000000L + offset * 1000 + path
  }

  private val Unknown = At(CurrentRow.UnknownPartition, CurrentRow.Unknown, 0)

  private def at(partition: Int, offset: Long, path: Long = 0): At = At(partition, offset, path)

  /** Rows as a shuffle gives them: the same mutable row again and again. */
  private class Arrivals(rows: At*) extends Iterator[InternalRow] {
    val current = new CurrentRow
    var taken = 0
    private val row = new GenericInternalRow(1)
    private val partitions = new SourcePartitions
    partitions.add(0, "topic", Seq.fill(2)(new InputPartition {}))
    current.belongsTo(partitions, newStage = 0, isTimed = false)

    override def hasNext: Boolean = taken < rows.length

    override def next(): InternalRow = {
      val next = rows(taken)
      taken += 1
      current.partitionIndex = next.partition
      current.offset = next.offset
      current.path = next.path
      row.setLong(0, next.number)
      row
    }

    def where: At = At(current.partitionIndex, current.offset, current.path)
  }

  private def ordered(arrivals: Arrivals, order: Seq[At]): ReplayOrder = {
    val keys = order.map(row => RowKey(SourcePartition(0, "topic", row.partition), row.offset, row.path))
    new ReplayOrder(arrivals, arrivals.current, keys.toArray)
  }

  private def replay(order: Seq[At])(rows: At*): Seq[At] = {
    val arrivals = new Arrivals(rows: _*)
    ordered(arrivals, order).map { row =>
      assertEquals(row.getLong(0), arrivals.where.number, "the row is not the one that its origin names")
      arrivals.where
    }.toList
  }
}
