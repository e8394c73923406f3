package org.apache.spark.sql.tailrace.epoch

import scala.collection.mutable

import org.apache.spark.sql.tailrace.epoch.context.EpochId
import org.apache.spark.sql.tailrace.epoch.drain.Drains
import org.apache.spark.sql.tailrace.epoch.overlap.EpochsAhead
import org.apache.spark.sql.tailrace.sink.ExactlyOnceSink

/** On the driver: what is remembered of a run from epoch to epoch, until the run ends. */
private[epoch] object Runs {
  private val firstEpochs = mutable.HashMap.empty[String, Long]
  private val lastCatchUps = mutable.HashMap.empty[String, (Long, Long)]
  private val sinks = mutable.HashMap.empty[String, ExactlyOnceSink]

  /** An epoch is about to be planned. */
  def begins(id: EpochId): Unit = synchronized(firstEpochs.getOrElseUpdate(id.run, id.epoch))

  /** How many epochs of the run this driver has planned before this one. */
  def epochsBefore(id: EpochId): Long = synchronized(id.epoch - firstEpochs.getOrElse(id.run, id.epoch))

  /**
   * Whether an epoch first has to read what is waiting in its sources: the first one of a run, and the next one if that
   * took so long that much may be waiting again.
   */
  def mayBeBehind(id: EpochId, nowMs: Long): Boolean = synchronized {
    val before = epochsBefore(id)
    before == 0 || (before < MaxCatchUps && lastCatchUps.get(id.run).exists { case (epoch, beganAtMs) =>
      epoch == id.epoch - 1 && nowMs - beganAtMs > LongCatchUpMs
    })
  }

  /** The epoch reads what is waiting in its sources before its timers fire. */
  def catchesUp(id: EpochId, nowMs: Long): Unit = synchronized(lastCatchUps(id.run) = (id.epoch, nowMs))

  def writesTo(run: String, sink: ExactlyOnceSink): Unit = synchronized(sinks(run) = sink)

  def ended(run: String): Unit = {
    Drains.forget(run)
    EpochsAhead.forget(run)
    val sink = synchronized {
      firstEpochs.remove(run)
      lastCatchUps.remove(run)
      sinks.remove(run)
    }
    sink.foreach(_.runEnded(run))
  }

  private val LongCatchUpMs = 3000L
  private val MaxCatchUps = 5
}
