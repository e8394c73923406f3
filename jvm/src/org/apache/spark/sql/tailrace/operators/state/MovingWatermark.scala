package org.apache.spark.sql.tailrace.operators.state

import org.apache.spark.sql.execution.datasources.v2.LowLatencyClock

/**
 * A task's watermark that moves within an epoch, in steps. After each step the operator must scan its whole state for
 * what has expired, so there is at most one step per second, and scans take at most a twentieth of the time.
 *
 * Lateness follows the steps: a row is late only if what it belongs to may have been removed by a scan.
 */
private[tailrace] final class MovingWatermark(watermark: TaskWatermark) {
  import MovingWatermark._

  private var reached = Long.MinValue
  private var began = watermark.beginsAtMs
  private var nextStep = began + MinIntervalMs

  /** The watermark of the last step; `Long.MinValue` if there was none. */
  def reachedMs: Long = reached

  /** To be called for each row, before it is checked for lateness. Ignores rows of unknown origin. */
  def observe(partitionIndex: Int, eventTimeMs: Long): Unit = if (partitionIndex >= 0) {
    watermark.observe(partitionIndex, eventTimeMs, now())
  }

  /** Takes a step if one is due and the watermark has moved. The caller scans its state and then calls [[stepDone]]. */
  def step(): Option[Long] = {
    val time = now()
    if (time < nextStep) {
      None
    } else {
      began = time
      nextStep = time + MinIntervalMs
      val next = watermark.atMs(time).filter(_ > reached)
      next.foreach(reached = _)
      next
    }
  }

  def stepDone(): Unit = {
    val ended = now()
    nextStep = ended + math.max(MinIntervalMs, ScanShare * (ended - began))
  }

  private def now(): Long = LowLatencyClock.getClock.getTimeMillis()
}

private[tailrace] object MovingWatermark {
  private val MinIntervalMs = 1000L
  private val ScanShare = 20
}
