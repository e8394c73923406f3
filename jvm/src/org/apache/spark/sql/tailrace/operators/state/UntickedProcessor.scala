package org.apache.spark.sql.tailrace.operators.state

import org.apache.spark.sql.streaming.{ExpiredTimerInfo, OutputMode, StatefulProcessor, TimeMode, TimerValues}

/** Wraps the user's processor, and hides ticks from it. */
private[tailrace] final class UntickedProcessor(users: StatefulProcessor[Any, Any, Any])
    extends StatefulProcessor[Any, Any, Any] {
  override def init(outputMode: OutputMode, timeMode: TimeMode): Unit = {
    users.setHandle(getHandle)
    users.init(outputMode, timeMode)
  }

  override def handleInputRows(key: Any, rows: Iterator[Any], timerValues: TimerValues): Iterator[Any] =
    if (Ticks.isOne) Iterator.empty else users.handleInputRows(key, rows, timerValues)

  override def handleExpiredTimer(key: Any, timerValues: TimerValues, timer: ExpiredTimerInfo): Iterator[Any] =
    users.handleExpiredTimer(key, timerValues, timer)

  override def close(): Unit = {
    users.close()
    users.setHandle(null)
  }
}

/** Tells if the row that the task's thread works on is a tick: a row that only lets timers fire. */
private[tailrace] object Ticks {
  private val current = ThreadLocal.withInitial[java.lang.Boolean](() => false)

  def isOne: Boolean = current.get()
  def set(isTick: Boolean): Unit = current.set(isTick)
}
