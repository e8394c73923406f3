package org.apache.spark.sql.tailrace.operators.python

import java.util.UUID

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.encoders.ExpressionEncoder
import org.apache.spark.sql.execution.datasources.v2.LowLatencyClock
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.execution.streaming.operators.stateful.transformwithstate.statefulprocessor.StatefulProcessorHandleImpl
import org.apache.spark.sql.execution.streaming.state.StateStore
import org.apache.spark.sql.streaming.TimeMode
import org.apache.spark.util.NextIterator

/** When a worker is to be asked to look after its timers. */
private[python] trait Ticks {

  /** 0 if now. */
  def msUntilDue(): Long

  /** `wake` is called, in any thread, when the next one is due earlier than was said. */
  def whenEarlier(wake: () => Unit): Unit
}

private[python] object Ticks {
  val Never: Ticks = new Ticks {
    override def msUntilDue(): Long = Long.MaxValue
    override def whenEarlier(wake: () => Unit): Unit = ()
  }
}

/**
 * Knows when the next timer of a task is due, so that Python is only asked when there is one. All but the volatile fields
 * are used by the thread of the state server alone.
 *
 * @param time what event-time timers are compared with
 */
private[python] final class TimerWatch(timeMode: TimeMode, time: ProcessorTime) extends Ticks {
  import TimerWatch._

  // The timers of earlier epochs are not known before the first look at them.
  @volatile private var earliest = Unknown
  private var foundWhileScanning = NoTimer
  private var scanning = false
  @volatile private var wake: () => Unit = () => ()

  /** Timers up to here were given out, and none was registered since: later looks need not go over their remains. */
  private var floor: Option[Long] = None

  override def whenEarlier(newWake: () => Unit): Unit = wake = newWake

  override def msUntilDue(): Long = {
    val next = earliest
    if (timeMode == TimeMode.EventTime() && time.hasNews) 0
    else if (next == NoTimer || timeMode == TimeMode.None()) Long.MaxValue
    else if (next == Unknown || next <= now()) 0
    else if (timeMode == TimeMode.EventTime()) Long.MaxValue
    else next - now()
  }

  private def now(): Long =
    if (timeMode == TimeMode.EventTime()) time.watermarkMs.getOrElse(Long.MinValue)
    else LowLatencyClock.getClock.getTimeMillis()

  def registered(expiryMs: Long): Unit = {
    floor = floor.map(math.min(_, expiryMs - 1))
    if (scanning) {
      foundWhileScanning = math.min(foundWhileScanning, expiryMs)
    } else if (earliest != Unknown && expiryMs < earliest) {
      earliest = expiryMs
      wake()
    }
  }

  /** The timers up to `untilMs`, out of all, which come in order; the first that is later is the next one. */
  def expired(scan: Option[Long] => Iterator[(Any, Long)], untilMs: Long): Iterator[(Any, Long)] = {
    val timers = scan(floor)
    floor = Some(untilMs)
    scanning = true
    foundWhileScanning = NoTimer
    new Iterator[(Any, Long)] {
      private var timer = following()

      override def hasNext: Boolean = timer != null
      override def next(): (Any, Long) = {
        val taken = timer
        timer = following()
        taken
      }

      private def following(): (Any, Long) = {
        val candidate = if (timers.hasNext) timers.next() else null
        if (candidate == null || candidate._2 > untilMs) {
          end(if (candidate == null) NoTimer else candidate._2)
          null
        } else {
          candidate
        }
      }

      private def end(next: Long): Unit = {
        timers match {
          // It holds a native iterator.
          case closeable: NextIterator[_] => closeable.closeIfNeeded()
          case _ =>
        }
        scanning = false
        earliest = math.min(next, foundWhileScanning)
      }
    }
  }
}

private object TimerWatch {
  private val Unknown = Long.MinValue
  private val NoTimer = Long.MaxValue
}

/** Spark's own access to a task's state, with the clock of Real-Time Mode and an eye on its timers. */
private[python] final class WatchedHandle(
    store: StateStore,
    run: UUID,
    keys: ExpressionEncoder[Any],
    timeMode: TimeMode,
    batchTimestampMs: Option[Long],
    prevBatchTimestampMs: Option[Long],
    metrics: Map[String, SQLMetric],
    watch: TimerWatch,
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
    watch.registered(expiryTimestampMs)
  }

  override def getExpiredTimers(expiryTimestampMs: Long, prevExpiryTimestampMs: Option[Long]): Iterator[(Any, Long)] =
    watch.expired(timersFrom, expiryTimestampMs)

  /** Ends those who read the state in threads of their own; set by them. */
  @volatile var stopReaders: () => Unit = () => ()

  private def timersFrom(floor: Option[Long]): Iterator[(Any, Long)] = {
    val timers = super.getExpiredTimers(Long.MaxValue, floor)
    // Spark frees the scan when the task ends, also while somebody reads it, and that would crash the JVM. Listeners run last in,
    // first out: this one before that.
    context.addTaskCompletionListener[Unit](_ => stopReaders())
    timers
  }
}
