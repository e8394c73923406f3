package org.apache.spark.sql.tailrace.operators.state

import org.apache.spark.sql.execution.datasources.v2.LowLatencyClock
import org.apache.spark.util.{ManualClock, SystemClock}

class MovingWatermarkSuite extends munit.FunSuite {
  private var clock: ManualClock = _

  override def beforeEach(context: BeforeEach): Unit = {
    clock = new ManualClock(100000)
    LowLatencyClock.setClock(clock)
  }

  override def afterEach(context: AfterEach): Unit = LowLatencyClock.setClock(new SystemClock)

  test("the watermark moves at most once a second") {
    val watermark = moving()
    watermark.observe(0, 5000)
    assertEquals(watermark.step(), None)
    clock.advance(1000)
    assertEquals(watermark.step(), Some(5000L))
    assertEquals(watermark.reachedMs, 5000L)
    watermark.observe(0, 6000)
    clock.advance(999)
    assertEquals(watermark.step(), None)
    clock.advance(1)
    assertEquals(watermark.step(), Some(6000L))
  }

  test("there is no step without progress") {
    val watermark = moving()
    clock.advance(1000)
    assertEquals(watermark.step(), None)
    watermark.observe(0, 5000)
    clock.advance(1000)
    assertEquals(watermark.step(), Some(5000L))
    clock.advance(1000)
    assertEquals(watermark.step(), None)
  }

  test("scans take at most a twentieth of the time") {
    val watermark = moving()
    watermark.observe(0, 5000)
    clock.advance(1000)
    assertEquals(watermark.step(), Some(5000L))
    clock.advance(500)
    watermark.stepDone()
    watermark.observe(0, 6000)
    clock.advance(20 * 500 - 1)
    assertEquals(watermark.step(), None)
    clock.advance(1)
    assertEquals(watermark.step(), Some(6000L))
  }

  test("rows of unknown origin are ignored") {
    val watermark = moving()
    watermark.observe(-1, 5000)
    clock.advance(1000)
    assertEquals(watermark.step(), None)
    assertEquals(watermark.reachedMs, Long.MinValue)
  }

  private def moving(): MovingWatermark = new MovingWatermark(new TaskWatermark(IndexedSeq(Some(0L)), 10000))
}
