package org.apache.spark.sql.tailrace.operators.python

import org.apache.spark.sql.execution.datasources.v2.LowLatencyClock
import org.apache.spark.sql.streaming.TimeMode
import org.apache.spark.util.NextIterator

/** When a worker gets a tick: an empty batch, on which it fires its expired timers. */
private[python] trait TimerTicks {

  /** False until it is known which timers are due. They fire before the first row is processed. */
  def hasBegun: Boolean

  /** Sets `action`, which is called in any thread when it has begun, also if it has before this call. */
  def whenBegun(action: () => Unit): Unit

  /** 0 if a tick is due now. */
  def msUntilDue(): Long

  /** Sets `wake`, which is called in any thread if the next tick becomes due earlier than [[msUntilDue]] said. */
  def whenEarlier(wake: () => Unit): Unit
}

private[python] object TimerTicks {
  val Never: TimerTicks = new TimerTicks {
    override def hasBegun: Boolean = true
    override def whenBegun(action: () => Unit): Unit = action()
    override def msUntilDue(): Long = Long.MaxValue
    override def whenEarlier(wake: () => Unit): Unit = ()
  }
}

/**
 * Keeps track of when a task's next timer is due, so Python gets a tick only if there is one. Only the state server's
 * thread uses the fields that are not volatile.
 *
 * @param watermark what event-time timers are compared with
 * @param onlyUpTo  if set, timers fire only at the end of the epoch, and only those that are due at this time
 */
private[python] final class TimerSchedule(
    timeMode: TimeMode,
    watermark: ProcessorWatermark,
    onlyUpTo: Option[Long] = None)
    extends TimerTicks {
  import TimerSchedule._

  // The timers of earlier epochs are unknown until the task has its state.
  @volatile private var earliest = Unknown
  private var foundWhileScanning = NoTimer
  private var scanning = false
  @volatile private var wake: () => Unit = () => ()
  private var begun = false
  private var onBegin: () => Unit = () => ()

  /** All timers up to here have fired and none was registered since, so later scans can skip their tombstones. */
  private var floor: Option[Long] = None

  override def hasBegun: Boolean = synchronized(begun)

  override def whenBegun(action: () => Unit): Unit = {
    val isLate = synchronized {
      onBegin = action
      begun
    }
    if (isLate) {
      action()
    }
  }

  override def whenEarlier(newWake: () => Unit): Unit = wake = newWake

  override def msUntilDue(): Long = {
    val next = earliest
    if (onlyUpTo.isDefined || next == Unknown) Long.MaxValue
    else if (timeMode == TimeMode.EventTime() && watermark.hasAdvanced) 0
    else if (next == NoTimer) Long.MaxValue
    else if (next <= now()) 0
    else if (timeMode == TimeMode.EventTime()) Long.MaxValue
    else next - now()
  }

  private def now(): Long =
    if (timeMode == TimeMode.EventTime()) watermark.watermarkMs.getOrElse(Long.MinValue)
    else LowLatencyClock.getClock.getTimeMillis()

  /**
   * The task has its state. Finds out which timer of earlier epochs is due first.
   *
   * @param scan gives all timers in order
   */
  def begin(scan: => Iterator[(Any, Long)]): Unit = {
    if (timeMode != TimeMode.None()) {
      val timers = scan
      earliest = if (timers.hasNext) timers.next()._2 else NoTimer
      close(timers)
    }
    val notify = synchronized {
      begun = true
      onBegin
    }
    notify()
  }

  def registered(expiryMs: Long): Unit = {
    floor = floor.map(math.min(_, expiryMs - 1))
    if (scanning) {
      foundWhileScanning = math.min(foundWhileScanning, expiryMs)
    } else if (earliest != Unknown && expiryMs < earliest) {
      earliest = expiryMs
      wake()
    }
  }

  /** The timers that are due. The scan gives all timers in order, so the first later one is the next to be due. */
  def expired(scan: Option[Long] => Iterator[(Any, Long)], nowMs: Long): Iterator[(Any, Long)] = {
    val untilMs = onlyUpTo.fold(nowMs)(math.min(_, nowMs))
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
        close(timers)
        scanning = false
        earliest = math.min(next, foundWhileScanning)
      }
    }
  }

  private def close(timers: Iterator[(Any, Long)]): Unit = timers match {
    // It holds a native iterator of RocksDB.
    case closeable: NextIterator[_] => closeable.closeIfNeeded()
    case _ =>
  }
}

private object TimerSchedule {
  private val Unknown = Long.MinValue
  private val NoTimer = Long.MaxValue
}
