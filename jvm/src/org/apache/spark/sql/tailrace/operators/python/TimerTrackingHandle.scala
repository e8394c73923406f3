package org.apache.spark.sql.tailrace.operators.python

import java.util.UUID

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.encoders.ExpressionEncoder
import org.apache.spark.sql.execution.datasources.v2.LowLatencyClock
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.execution.streaming.operators.stateful.transformwithstate.statefulprocessor.StatefulProcessorHandleImpl
import org.apache.spark.sql.execution.streaming.state.StateStore
import org.apache.spark.sql.streaming.TimeMode

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

  override def registerTimer(expiryTimestampMs: Long): Unit = {
    super.registerTimer(expiryTimestampMs)
    timers.registered(expiryTimestampMs)
  }

  override def getExpiredTimers(expiryTimestampMs: Long, prevExpiryTimestampMs: Option[Long]): Iterator[(Any, Long)] =
    timers.expired(timersFrom, expiryTimestampMs)

  /** Stops the threads that read the state; set by whoever starts them. */
  @volatile var stopReaders: () => Unit = () => ()

  private def timersFrom(floor: Option[Long]): Iterator[(Any, Long)] = {
    val scan = super.getExpiredTimers(Long.MaxValue, floor)
    // Spark frees the scan when the task ends. If another thread still reads it then, the JVM crashes. Listeners run
    // last in, first out: this one runs before Spark's.
    context.addTaskCompletionListener[Unit](_ => stopReaders())
    scan
  }
}
