package org.apache.spark.sql.tailrace.operators.session

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{AttributeReference, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.tailrace.ManualTime
import org.apache.spark.sql.tailrace.operators.state.{EventTime, IntraEpochWatermark}
import org.apache.spark.sql.tailrace.origin.CurrentRow
import org.apache.spark.sql.types.{LongType, StringType, StructType}
import org.apache.spark.unsafe.types.UTF8String

class EarlyClosingSuite extends munit.FunSuite with ManualTime {
  private val windowType = new StructType().add("start", LongType).add("end", LongType)
  private val key = AttributeReference("key", StringType)()
  private val window = AttributeReference("window", windowType)()
  private val columns = Seq(key, window)
  private val time = EventTime(column = 1, isWindow = true, delayMs = 0)

  test("the window is found by its column, wherever it is") {
    val session = row("a", startMs = 1, endMs = 6)
    val column = new WindowColumn(window, columns)
    assertEquals((column.startOf(session), column.endOf(session)), (1000L, 6000L))
    val first = new WindowColumn(window, columns.reverse)
    val reversed = projected(columns.reverse, InternalRow(InternalRow(7000L, 8000L), UTF8String.fromString("a")))
    assertEquals((first.startOf(reversed), first.endOf(reversed)), (7000L, 8000L))
  }

  test("sessions that have ended are closed once a step is due") {
    val (closing, _) = started()
    val open = Seq(row("a", 1000, 3000), row("b", 2000, 9000))
    closing.observe(row("c", 5000, 9000))
    assertEquals(close(closing, open), Nil)
    clock().advance(1000)
    assertEquals(close(closing, open), Seq("a"))
    clock().advance(1000)
    assertEquals(close(closing, open), Nil, "the watermark has not moved since")
  }

  test("a row is late only if its session may have been closed") {
    val (closing, _) = started()
    val late = row("a", 1000, 3000)
    closing.observe(row("c", 5000, 9000))
    assert(!closing.isLate(late), "nothing has been closed yet")
    clock().advance(1000)
    close(closing, Nil)
    assert(closing.isLate(late))
    assert(closing.isLate(row("a", 4000, 5000)), "it ends where the watermark is")
    assert(!closing.isLate(row("a", 4000, 5001)))
  }

  test("rows of unknown origin do not move the watermark") {
    val (closing, current) = started()
    current.forget()
    closing.observe(row("c", 5000, 9000))
    clock().advance(1000)
    assertEquals(close(closing, Seq(row("a", 1000, 3000))), Nil)
  }

  private def started(): (EarlyClosing, CurrentRow) = {
    val current = new CurrentRow
    current.partitionIndex = 0
    val watermark = IntraEpochWatermark(Seq(Some(time)), idleAfterMs = 60000).inTask(Seq(0 until 1))
    (new EarlyClosing(watermark, time, current, new WindowColumn(window, columns)), current)
  }

  private def close(closing: EarlyClosing, open: Seq[UnsafeRow]): Seq[String] =
    closing.closeIfDue(isClosed => open.filter(isClosed)).map(_.getUTF8String(0).toString)

  private def row(key: String, startMs: Long, endMs: Long): UnsafeRow =
    projected(columns, InternalRow(UTF8String.fromString(key), InternalRow(startMs * 1000, endMs * 1000)))

  private def projected(schema: Seq[AttributeReference], row: InternalRow): UnsafeRow =
    UnsafeProjection.create(schema, schema)(row).copy()
}
