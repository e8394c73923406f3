package org.apache.spark.sql.tailrace.operators.state

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.tailrace.ManualTime

class MovingWatermarkSuite extends munit.FunSuite with ManualTime {
  test("the watermark moves at most once a second") {
    val watermark = moving()
    watermark.observe(0, 5000)
    assertEquals(watermark.step(), None)
    clock().advance(1000)
    assertEquals(watermark.step(), Some(5000L))
    assertEquals(watermark.reachedMs, 5000L)
    watermark.observe(0, 6000)
    clock().advance(999)
    assertEquals(watermark.step(), None)
    clock().advance(1)
    assertEquals(watermark.step(), Some(6000L))
  }

  test("there is no step without progress") {
    val watermark = moving()
    clock().advance(1000)
    assertEquals(watermark.step(), None)
    watermark.observe(0, 5000)
    clock().advance(1000)
    assertEquals(watermark.step(), Some(5000L))
    clock().advance(1000)
    assertEquals(watermark.step(), None)
  }

  test("scans take at most a twentieth of the time") {
    val watermark = moving()
    watermark.observe(0, 5000)
    clock().advance(1000)
    assertEquals(watermark.step(), Some(5000L))
    clock().advance(500)
    watermark.stepDone()
    watermark.observe(0, 6000)
    clock().advance(20 * 500 - 1)
    assertEquals(watermark.step(), None)
    clock().advance(1)
    assertEquals(watermark.step(), Some(6000L))
  }

  test("rows of unknown origin are ignored") {
    val watermark = moving()
    watermark.observe(-1, 5000)
    clock().advance(1000)
    assertEquals(watermark.step(), None)
    assertEquals(watermark.reachedMs, Long.MinValue)
  }

  test("the watermark never moves back") {
    val watermark = new MovingWatermark(new TaskWatermark(IndexedSeq(Some(0L), Some(0L)), 10000))
    clock().advance(1)
    watermark.observe(0, 5000)
    clock().advance(10000)
    assertEquals(watermark.step(), Some(5000L))
    // The silent partition has rows again, and they are older.
    watermark.observe(1, 2000)
    watermark.observe(0, 7000)
    clock().advance(1000)
    assertEquals(watermark.step(), None)
    assertEquals(watermark.reachedMs, 5000L)
  }

  test("inputs without a watermark are ignored") {
    val within = IntraEpochWatermark(Seq(Some(EventTime(0, isWindow = false, delayMs = 1000)), None), 10000)
    val watermark = within.inTask(Seq(0 until 2, 2 until 3))
    watermark.observe(0, 5000)
    watermark.observe(1, 7000)
    clock().advance(1000)
    assertEquals(watermark.step(), Some(4000L))
  }

  test("in an epoch that is started ahead, no partition is silent before it begins") {
    val within = IntraEpochWatermark(Seq(Some(EventTime(0, isWindow = false, delayMs = 0))), idleAfterMs = 1500)
    val watermark = within.inTask(Seq(0 until 2), Some(startedAhead(beginsInMs = 2000)))
    clock().advance(2500)
    watermark.observe(0, 5000)
    clock().advance(500)
    // It is due a second after the beginning, and waits for the other partition.
    assertEquals(watermark.step(), None)
    clock().advance(1000)
    assertEquals(watermark.step(), Some(5000L))
  }

  test("an epoch that begins late begins when its task is built") {
    val within = IntraEpochWatermark(Seq(Some(EventTime(0, isWindow = false, delayMs = 0))), idleAfterMs = 1500)
    val watermark = within.inTask(Seq(0 until 2), Some(startedAhead(beginsInMs = -5000)))
    watermark.observe(0, 5000)
    clock().advance(1000)
    assertEquals(watermark.step(), None)
  }

  private def startedAhead(beginsInMs: Long): EpochTakeOver = new EpochTakeOver {
    override val beginsAtMs: Long = clock().getTimeMillis() + beginsInMs
    override def ofState(operator: Long, partition: Int): StateTakeOver = throw new UnsupportedOperationException
  }

  test("event time is in milliseconds, rounded down; that of a window is its start") {
    assertEquals(EventTime(1, isWindow = false, 0).of(InternalRow(null, 1999L)), 1L)
    assertEquals(EventTime(0, isWindow = false, 0).of(InternalRow(-1L)), -1L)
    assertEquals(EventTime(0, isWindow = true, 0).of(InternalRow(InternalRow(3000L, 9000L))), 3L)
    assertEquals(EventTime(0, isWindow = false, 0).of(InternalRow(null)), Long.MinValue)
  }

  private def moving(): MovingWatermark = new MovingWatermark(new TaskWatermark(IndexedSeq(Some(0L)), 10000))
}
