package org.apache.spark.sql.tailrace.sessions

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.datasources.v2.LowLatencyClock
import org.apache.spark.sql.tailrace.provenance.CurrentRow
import org.apache.spark.sql.tailrace.state.TaskWatermark

/**
 * Lets sessions close while the epoch lasts. All sessions of the task must be looked at to find those whose time is over, so
 * that is done at most once a second, and not for more than a twentieth of the time.
 *
 * Only what has been looked at counts: until then a row can still join a session whose time is over, and a row is late
 * only if its session could have been closed already.
 */
private[sessions] final class EarlyClosing(watermark: TaskWatermark, current: CurrentRow, window: WindowColumn) {
  import EarlyClosing._
  import window._

  private var closedUntilMicros = Long.MinValue
  private var nextLook = now() + AtMostEveryMs

  def isLate(row: UnsafeRow): Boolean = endOf(row) <= closedUntilMicros

  /** To be told of each row, before it is known whether it is late. Its own session begins when it happened. */
  def sees(row: UnsafeRow): Unit = if (current.place >= 0) {
    watermark.sees(current.place, startOf(row) / MicrosPerMilli, now())
  }

  /** The sessions whose time is over, if it is time to look for them. */
  def look(closed: (UnsafeRow => Boolean) => Seq[UnsafeRow]): Seq[UnsafeRow] = {
    val began = now()
    if (began < nextLook) {
      Nil
    } else {
      nextLook = began + AtMostEveryMs
      watermark.atMs(began).map(_ * MicrosPerMilli).filter(_ > closedUntilMicros).fold(Seq.empty[UnsafeRow]) { until =>
        val found = closed(endOf(_) <= until)
        closedUntilMicros = until
        nextLook += LookShare * (now() - began)
        found
      }
    }
  }

  private def now(): Long = LowLatencyClock.getClock.getTimeMillis()
}

private object EarlyClosing {
  private val AtMostEveryMs = 1000L
  private val LookShare = 20
  private val MicrosPerMilli = 1000L
}
