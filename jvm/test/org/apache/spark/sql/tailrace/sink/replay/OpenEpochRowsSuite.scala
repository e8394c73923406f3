package org.apache.spark.sql.tailrace.sink.replay

import org.apache.spark.sql.tailrace.origin.{RowId, SourcePartition}
import org.apache.spark.sql.tailrace.sink.dedup.{OutputPosition, WriterMark, WrittenRow}

class OpenEpochRowsSuite extends munit.FunSuite {
  private val source = SourcePartition(0, "in", 0)
  private val open = OpenEpochRows(epoch = 7, Map(source -> 100L))

  private def row(key: Long, offset: Long, at: Long, from: SourcePartition = source): WrittenRow = WrittenRow(
    from,
    RowId(offset, 0, 0),
    WriterMark("query", 1, 0, at),
    keyHash = key,
    contentHash = offset,
    contentId = None,
    OutputPosition("out", 0, at))

  private def keptOf(rows: WrittenRow*): Set[Long] = open.rowsAmong(rows).map(_.at.offset).toSet

  test("rows of the epoch before, which was committed, are left out") {
    assertEquals(keptOf(row(1, 98, at = 0), row(1, 99, at = 1), row(1, 100, at = 2), row(2, 97, at = 3)), Set(2L))
  }

  test("a committed row behind one that can be replayed tells what the key's last record is") {
    assertEquals(keptOf(row(1, 99, at = 0), row(1, 100, at = 1), row(1, 98, at = 2)), Set(1L, 2L))
  }

  test("rows of a partition that is not read any more are kept") {
    assertEquals(keptOf(row(1, 5, at = 0, SourcePartition(0, "in", 1))), Set(0L))
  }

  test("rows that time has made belong to the epoch in which they were made") {
    val time = SourcePartition.madeByTime(0)
    assertEquals(keptOf(row(1, 6, at = 0, time), row(2, 7, at = 1, time)), Set(1L))
  }
}
