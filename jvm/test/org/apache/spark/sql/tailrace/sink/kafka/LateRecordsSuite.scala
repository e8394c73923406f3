package org.apache.spark.sql.tailrace.sink.kafka

import org.apache.spark.sql.tailrace.origin.{RowId, SourcePartition}
import org.apache.spark.sql.tailrace.sink.dedup.{OutputPosition, WriterMark, WrittenRow}

import tailrace.TailraceException

class LateRecordsSuite extends munit.FunSuite {
  private val second = 1000L * 1000 * 1000
  private var now = 0L

  test("the wait is over when nothing has arrived for a while") {
    val late = newLate()
    assert(!late.isAwaited)
    late.observe(row)
    assert(late.isAwaited)
    now += LateRecords.QuietNanos - 1
    assert(late.isAwaited)
    late.observe(row)
    now += LateRecords.QuietNanos
    assert(!late.isAwaited)
  }

  test("a writer that does not end is an error with a code") {
    val late = newLate()
    late.observe(row)
    val error = intercept[TailraceException] {
      (0L to LateRecords.LimitNanos + 2 * second by second).foreach { _ =>
        assert(late.isAwaited)
        late.observe(row)
        now += second
      }
    }
    assertEquals(error.getCondition, "TAILRACE_OUTPUT_STILL_WRITTEN")
  }

  test("the time in which old records were read does not count") {
    val late = newLate()
    (1 to 100).foreach { _ =>
      late.observe(row)
      now += second
    }
    assert(late.isAwaited)
  }

  private def newLate(): LateRecords = {
    now = 0L
    val late = new LateRecords(_ => true, isExpected = false, () => now)
    late.start()
    late
  }

  private def row = WrittenRow(
    SourcePartition(0, "in", 0),
    RowId(1, 0, 0),
    WriterMark("query", 1, 0, 0),
    1,
    1,
    None,
    OutputPosition("out", 0, 0))
}
