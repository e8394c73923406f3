package org.apache.spark.sql.tailrace.operators.session

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.tailrace.operators.state.{EventTime, MovingWatermark}
import org.apache.spark.sql.tailrace.origin.CurrentRow

/** Lets sessions close while the epoch lasts. */
private[session] final class EarlyClosing(
    watermark: MovingWatermark,
    time: EventTime,
    current: CurrentRow,
    window: WindowColumn) {
  import window._

  private var closedUntilMicros = Long.MinValue

  def isLate(row: UnsafeRow): Boolean = endOf(row) <= closedUntilMicros

  /** To be told of each row, before it is known whether it is late. */
  def sees(row: UnsafeRow): Unit = watermark.sees(current.place, time.of(row))

  /** The sessions whose time is over, if it is time to look for them. */
  def look(closed: (UnsafeRow => Boolean) => Seq[UnsafeRow]): Seq[UnsafeRow] =
    watermark.step().fold(Seq.empty[UnsafeRow]) { untilMs =>
      closedUntilMicros = untilMs * EventTime.MicrosPerMilli
      val found = closed(endOf(_) <= closedUntilMicros)
      watermark.lookedThrough()
      found
    }
}
