package org.apache.spark.sql.tailrace.operators.state

import org.apache.spark.sql.execution.datasources.v2.LowLatencyClock

/**
 * A task's watermark that moves while the epoch lasts, in steps. After each, all that the task keeps must be looked through to find
 * what is over, so there is at most one a second, and looking does not take more than a twentieth of the time.
 *
 * Only what has been looked at counts: until then a row can still meet what is over, and a row is late only
 * if what it belongs to could be gone already.
 */
private[tailrace] final class MovingWatermark(watermark: TaskWatermark) {
  import MovingWatermark._

  private var reached = Long.MinValue
  private var began = now()
  private var nextStep = began + AtMostEveryMs

  /** Of the last step; `Long.MinValue` if there was none. */
  def reachedMs: Long = reached

  /** To be told of each row, before it is known whether it is late. Nothing is learned of a row from an unknown place. */
  def sees(place: Int, eventTimeMs: Long): Unit = if (place >= 0) {
    watermark.sees(place, eventTimeMs, now())
  }

  /** The watermark after a step, if it is time for one and there is one; [[lookedThrough]] is to follow. */
  def step(): Option[Long] = {
    val time = now()
    if (time < nextStep) {
      None
    } else {
      began = time
      nextStep = time + AtMostEveryMs
      val next = watermark.atMs(time).filter(_ > reached)
      next.foreach(reached = _)
      next
    }
  }

  def lookedThrough(): Unit = {
    val ended = now()
    nextStep = ended + math.max(AtMostEveryMs, LookShare * (ended - began))
  }

  private def now(): Long = LowLatencyClock.getClock.getTimeMillis()
}

private[tailrace] object MovingWatermark {
  private val AtMostEveryMs = 1000L
  private val LookShare = 20
}
