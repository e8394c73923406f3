package org.apache.spark.sql.tailrace.operators.state

import org.apache.spark.sql.execution.datasources.v2.LowLatencyClock

class TaskWatermarkSuite extends munit.FunSuite {
  private val idleAfterMs = 1000L
  private def now(): Long = LowLatencyClock.getClock.getTimeMillis()

  test("the slowest partition counts, minus its delay") {
    val (watermark, start) = (of(Some(10), Some(100)), now())
    watermark.observe(0, 5000, start)
    watermark.observe(1, 4000, start)
    assertEquals(watermark.atMs(start), Some(3900L))
    watermark.observe(1, 9000, start)
    assertEquals(watermark.atMs(start), Some(4990L))
  }

  test("there is no watermark until every partition has had a row") {
    val (watermark, start) = (of(Some(0), Some(0)), now())
    assertEquals(watermark.atMs(start), None)
    watermark.observe(0, 5000, start)
    assertEquals(watermark.atMs(start), None)
  }

  test("a silent partition is ignored after a while") {
    val (watermark, start) = (of(Some(0), Some(0)), now())
    val later = start + 2 * idleAfterMs
    watermark.observe(0, 5000, later)
    assertEquals(watermark.atMs(later), Some(5000L))
  }

  test("a partition that speaks again counts again") {
    val (watermark, start) = (of(Some(0), Some(0)), now())
    watermark.observe(1, 100, start)
    val later = start + 2 * idleAfterMs
    watermark.observe(0, 5000, later)
    assertEquals(watermark.atMs(later), Some(5000L))
    watermark.observe(1, 200, later)
    assertEquals(watermark.atMs(later), Some(200L))
  }

  test("the partition of the last row counts even if all are silent") {
    val (watermark, start) = (of(Some(0), Some(0)), now())
    watermark.observe(0, 5000, start + 1)
    watermark.observe(1, 7000, start + 2)
    assertEquals(watermark.atMs(start + 100 * idleAfterMs), Some(7000L))
  }

  test("only one partition has the last row, also of those that came in the same millisecond") {
    val (watermark, start) = (of(Some(0), Some(0)), now())
    watermark.observe(0, 1000, start)
    watermark.observe(1, 7000, start)
    assertEquals(watermark.atMs(start), Some(1000L))
    assertEquals(watermark.atMs(start + 100 * idleAfterMs), Some(7000L))
  }

  test("an older row does not move the watermark back") {
    val (watermark, start) = (of(Some(0)), now())
    watermark.observe(0, 5000, start)
    watermark.observe(0, 1000, start)
    assertEquals(watermark.atMs(start), Some(5000L))
  }

  test("partitions without a watermark are ignored") {
    val (watermark, start) = (of(None, Some(0)), now())
    watermark.observe(0, 1, start)
    watermark.observe(1, 5000, start)
    assertEquals(watermark.atMs(start), Some(5000L))
    assertEquals(of(None).atMs(start), None)
  }

  private def of(delaysMs: Option[Long]*): TaskWatermark = new TaskWatermark(delaysMs.toIndexedSeq, idleAfterMs)
}
