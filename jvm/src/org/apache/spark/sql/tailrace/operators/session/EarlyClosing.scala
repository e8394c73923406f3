package org.apache.spark.sql.tailrace.operators.session

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.tailrace.operators.state.{EventTime, MovingWatermark}
import org.apache.spark.sql.tailrace.origin.CurrentRow

/** Closes sessions within an epoch. */
private[session] final class EarlyClosing(
    watermark: MovingWatermark,
    time: EventTime,
    current: CurrentRow,
    window: WindowColumn) {
  import window._

  private var closedUntilMicros = Long.MinValue

  def isLate(row: UnsafeRow): Boolean = endOf(row) <= closedUntilMicros

  /** To be called for each row, before [[isLate]]. */
  def observe(row: UnsafeRow): Unit = watermark.observe(current.partitionIndex, time.of(row))

  /** If a scan is due, closes the sessions that have ended, and returns them. */
  def closeIfDue(close: (UnsafeRow => Boolean) => Seq[UnsafeRow]): Seq[UnsafeRow] =
    watermark.step().fold(Seq.empty[UnsafeRow]) { untilMs =>
      closedUntilMicros = untilMs * EventTime.MicrosPerMilli
      // However many are closed at a time, the sessions of a key come in the same order: a replay closes more at once.
      val closed = close(endOf(_) <= closedUntilMicros).sortBy(endOf)
      watermark.stepDone()
      closed
    }
}
