package org.apache.spark.sql.tailrace.operators.python

import java.util.UUID

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.encoders.ExpressionEncoder
import org.apache.spark.sql.execution.datasources.v2.LowLatencyClock
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.execution.streaming.operators.stateful.transformwithstate.statefulprocessor.StatefulProcessorHandleImpl
import org.apache.spark.sql.execution.streaming.state.StateStore
import org.apache.spark.sql.streaming.TimeMode
import org.apache.spark.sql.tailrace.operators.state.{OpensLate, StateScans}

/**
 * Spark's own handle on a task's state, which uses Real-Time Mode's clock and reports timers to a [[TimerSchedule]].
 */
private[python] final class TimerTrackingHandle(
    store: StateStore,
    run: UUID,
    keys: ExpressionEncoder[Any],
    timeMode: TimeMode,
    batchTimestampMs: Option[Long],
    prevBatchTimestampMs: Option[Long],
    metrics: Map[String, SQLMetric],
    timers: TimerSchedule,
    context: TaskContext)
    extends StatefulProcessorHandleImpl(
      store,
      run,
      keys,
      timeMode,
      isStreaming = true,
      batchTimestampMs,
      prevBatchTimestampMs,
      metrics,
      Some(() => LowLatencyClock.getClock.getTimeMillis())) {

  /** Stops the threads that read the state; set by the code that starts them. */
  @volatile var stopReaders: () => Unit = () => ()

  private val (expiredTimers, timersOfKey) = (new StateScans(context), new StateScans(context))
  // If another thread still reads a scan when it is freed, the JVM crashes. Listeners run last in, first out: this one
  // runs before the scans are freed.
  context.addTaskCompletionListener[Unit](_ => stopReaders())

  /**
   * The processor has defined its variables. Waits for the state, if the epoch before still has it, and finds out which
   * timers of earlier epochs are due. After that the worker gets its rows.
   */
  def begin(): Unit = {
    store match {
      case late: OpensLate => late.open()
      case _ =>
    }
    timers.begin(expiredTimers(super.getExpiredTimers(Long.MaxValue, None)))
  }

  override def registerTimer(expiryTimestampMs: Long): Unit = {
    super.registerTimer(expiryTimestampMs)
    timers.registered(expiryTimestampMs)
  }

  override def getExpiredTimers(expiryTimestampMs: Long, prevExpiryTimestampMs: Option[Long]): Iterator[(Any, Long)] =
    timers.expired(floor => expiredTimers(super.getExpiredTimers(Long.MaxValue, floor)), expiryTimestampMs)

  // Read at once, because the worker may leave off anywhere and start another scan.
  override def listTimers(): Iterator[Long] = {
    val timers = timersOfKey(super.listTimers().toArray)
    timersOfKey.end()
    timers.iterator
  }
}
