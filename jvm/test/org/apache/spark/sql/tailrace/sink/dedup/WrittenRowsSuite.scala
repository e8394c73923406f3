package org.apache.spark.sql.tailrace.sink.dedup

import org.apache.spark.sql.tailrace.origin.{RowId, SourcePartition}

class WrittenRowsSuite extends munit.FunSuite {
  private val (left, right) = (SourcePartition(0, "in", 0), SourcePartition(1, "in", 0))

  test("a task's rows come in the order in which it wrote them, older runs first") {
    val rows = new WrittenRows(Seq(
      row(2, attempt = 2, sequence = 0),
      row(1, attempt = 1, sequence = 1),
      row(0, attempt = 1, sequence = 0),
      row(9, task = 1)))
    assertEquals(rows.byTask(0).map(_.row.offset).toSeq, Seq(0L, 1L, 2L))
    assertEquals(rows.attempts, 2)
    assertEquals(rows.length, 4)
  }

  test("rows of a retry are added, but not those that are known") {
    val rows = new WrittenRows(Seq(row(0))) ++ Seq(row(0), row(1, sequence = 1, at = 1))
    assertEquals(rows.byTask(0).map(_.row.offset).toSeq, Seq(0L, 1L))
  }

  test("the last offset is that of the source that the rows come from") {
    val rows = new WrittenRows(Seq(row(3, source = left), row(7, source = right), row(5, source = left)))
    assertEquals(rows.lastOffsets, Map(left -> 5L, right -> 7L))
    assertEquals(rows.bySource(left).map(_.row.offset).toSeq, Seq(3L, 5L))
  }

  test("nothing was written") {
    assert(WrittenRows.none.isEmpty)
    assertEquals(WrittenRows.none.attempts, 0)
    assertEquals(WrittenRows.none.lastOffsets, Map.empty[SourcePartition, Long])
  }

  test("rows made by time are of an epoch, and have no offset") {
    val rows = new WrittenRows(Seq(row(3), row(7, source = SourcePartition.madeByTime(0))))
    assertEquals(rows.lastOffsets, Map(left -> 3L))
    assertEquals(Seq(3L, 7L).filter(rows.hasRowsMadeByTime), Seq(7L))
  }

  test("the records of a key come in the order of the topic") {
    val rows = new WrittenRows(Seq(row(1, attempt = 2, at = 5), row(0, attempt = 1, at = 9)))
    assertEquals(rows.historiesOf(0)(1L).map(_.row.offset).toSeq, Seq(1L, 0L))
  }

  test("a row is in order unless one of an older record follows") {
    val rows = new SourceRows(Array(row(0, at = 0), row(2, at = 1), row(1, at = 2), row(3, at = 3)))
    val inOrder = Seq(0L, 1L, 2L, 3L).filter(offset => rows.of(RowId(offset, 0, 0)).takeAny().exists(_.isInOrder))
    assertEquals(inOrder, Seq(0L, 1L, 3L))
    assert(rows.hasLater(2, keyHash = 1))
    assert(!rows.hasLater(3, keyHash = 1))
    assert(!rows.hasLater(2, keyHash = 2))
    assertEquals(rows.lastOffset, 3L)
  }

  private def row(
      offset: Long,
      source: SourcePartition = left,
      attempt: Int = 1,
      task: Int = 0,
      sequence: Long = 0,
      at: Long = 0): WrittenRow = {
    val mark = WriterMark("query", attempt, task, sequence)
    WrittenRow(source, RowId(offset, 0, 0), mark, 1L, 10L, None, OutputPosition("out", 0, at))
  }
}
