package org.apache.spark.sql.tailrace.operators.state

import java.util.Arrays

import org.apache.spark.sql.execution.datasources.v2.LowLatencyClock

/**
 * How far event time has come within an epoch, as far as a task can tell by the rows that it has seen.
 *
 * Spark's own watermark is that of the source partition that is furthest ahead, which is harmless because it moves between epochs
 * alone. Within an epoch the partitions are read side by side, some faster, above all when a backlog is read: here
 * it is that of the one that is furthest behind, so that none becomes late because another one was read first. A partition
 * that brings nothing would hold it for ever, so it is not waited for after some time.
 *
 * The rows of a partition must come in the order in which they were read: not through more than one shuffle.
 *
 * @param delaysMs    how late a row of each source partition may be; none for partitions whose rows do not count
 * @param idleAfterMs how long a partition that brings nothing is waited for
 */
private[tailrace] final class TaskWatermark(delaysMs: IndexedSeq[Option[Long]], idleAfterMs: Long) {
  private val partitions = delaysMs.indices.filter(delaysMs(_).isDefined).toArray
  private val delays = delaysMs.map(_.getOrElse(0L)).toArray
  private val newest = new Array[Long](delays.length)
  Arrays.fill(newest, Long.MinValue)
  private val heardAt = new Array[Long](delays.length)
  private var heardLast = LowLatencyClock.getClock.getTimeMillis()
  Arrays.fill(heardAt, heardLast)

  def sees(partition: Int, eventTimeMs: Long, atMs: Long): Unit = if (delaysMs(partition).isDefined) {
    heardAt(partition) = atMs
    heardLast = atMs
    if (eventTimeMs > newest(partition)) {
      newest(partition) = eventTimeMs
    }
  }

  /** None as long as a partition that may still bring rows has brought none. */
  def atMs(now: Long): Option[Long] = {
    var (slowest, isKnown) = (Long.MaxValue, true)
    partitions.foreach { partition =>
      // The one that spoke last counts even if all have fallen silent: otherwise the time at which one looks would decide.
      if (now - heardAt(partition) < idleAfterMs || heardAt(partition) == heardLast) {
        isKnown &&= newest(partition) != Long.MinValue
        slowest = math.min(slowest, newest(partition) - delays(partition))
      }
    }
    Option.when(isKnown && slowest != Long.MaxValue)(slowest)
  }
}
