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

  test("rows of a retry are added") {
    val rows = new WrittenRows(Seq(row(0))) ++ Seq(row(1, sequence = 1))
    assertEquals(rows.byTask(0).map(_.row.offset).toSeq, Seq(0L, 1L))
  }

  test("the last offset is that of the topic's partition, whichever source reads it") {
    val rows = new WrittenRows(Seq(row(3, source = left), row(7, source = right), row(5, source = left)))
    assertEquals(rows.lastOffsets, Map(("in", 0) -> 7L))
    assertEquals(rows.bySource(left).map(_.row.offset).toSeq, Seq(3L, 5L))
  }

  test("nothing was written") {
    assert(WrittenRows.none.isEmpty)
    assertEquals(WrittenRows.none.attempts, 0)
    assertEquals(WrittenRows.none.lastOffsets, Map.empty[(String, Int), Long])
  }

  test("a row is found once") {
    val index = new WrittenRowIndex(new WrittenRows(Seq(row(0))))
    assertEquals(index.rowsOf(left, RowId(0, 0, 0)).takeOrdinal(0), Some(10L))
    assertEquals(index.rowsOf(left, RowId(0, 0, 0)).takeOrdinal(0), None)
    assert(index.rowsOf(left, RowId(0, 0, 0)).isEmpty)
  }

  test("the index keeps records, paths and sources apart") {
    val index = new WrittenRowIndex(new WrittenRows(Seq(row(0))))
    assert(!index.rowsOf(left, RowId(0, 0, 5)).isEmpty)
    assert(index.rowsOf(left, RowId(1, 0, 0)).isEmpty)
    assert(index.rowsOf(left, RowId(0, 1, 0)).isEmpty)
    assert(index.rowsOf(right, RowId(0, 0, 0)).isEmpty)
  }

  test("a later row of a key is one of a later record of the same partition") {
    val index = new WrittenRowIndex(new WrittenRows(Seq(row(5))))
    assert(index.hasLater(left, 4, keyHash = 1))
    assert(!index.hasLater(left, 5, keyHash = 1))
    assert(!index.hasLater(left, 4, keyHash = 2))
    assert(!index.hasLater(right, 4, keyHash = 1))
  }

  private def row(
      offset: Long,
      source: SourcePartition = left,
      attempt: Int = 1,
      task: Int = 0,
      sequence: Long = 0): WrittenRow =
    WrittenRow(source, RowId(offset, 0, 0), WriterMark("query", attempt, task, sequence), 1L, 10L, None)
}
