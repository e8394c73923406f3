package org.apache.spark.sql.tailrace.operators.state

import java.util.Arrays

import org.apache.spark.sql.execution.datasources.v2.LowLatencyClock

/**
 * The event-time watermark of a task within an epoch, from the rows that it has seen.
 *
 * Spark's own watermark follows the source partition that is furthest ahead, which is harmless because it moves only
 * between epochs. Within an epoch the partitions are read concurrently and at different speeds, most of all when a
 * backlog is read. So this watermark follows the partition that is furthest behind, and no row becomes late because
 * another partition was read first. A silent partition would hold the watermark forever, so it is ignored after a
 * while.
 *
 * The rows of a partition must arrive in the order in which they were read: through at most one shuffle.
 *
 * @param delaysMs    by source partition, how late a row may be; none for partitions that are ignored
 * @param idleAfterMs how long to wait for a silent partition
 * @param beginsAtMs  when the first row can come
 */
private[tailrace] final class TaskWatermark(
    delaysMs: IndexedSeq[Option[Long]],
    idleAfterMs: Long,
    val beginsAtMs: Long = LowLatencyClock.getClock.getTimeMillis()) {
  private val partitions = delaysMs.indices.filter(delaysMs(_).isDefined).toArray
  private val delays = delaysMs.map(_.getOrElse(0L)).toArray
  private val newest = new Array[Long](delays.length)
  Arrays.fill(newest, Long.MinValue)
  private val lastRowAt = new Array[Long](delays.length)
  Arrays.fill(lastRowAt, beginsAtMs)
  private var lastToSpeak = -1

  def observe(partition: Int, eventTimeMs: Long, atMs: Long): Unit = if (delaysMs(partition).isDefined) {
    lastRowAt(partition) = atMs
    lastToSpeak = partition
    if (eventTimeMs > newest(partition)) {
      newest(partition) = eventTimeMs
    }
  }

  /** None until every partition that is not idle has had a row. */
  def atMs(now: Long): Option[Long] = {
    var (slowest, isKnown) = (Long.MaxValue, true)
    partitions.foreach { partition =>
      // The partition of the last row counts even if all are idle: the result must not depend on when it is asked for.
      if (now - lastRowAt(partition) < idleAfterMs || partition == lastToSpeak) {
        isKnown &&= newest(partition) != Long.MinValue
        slowest = math.min(slowest, newest(partition) - delays(partition))
      }
    }
    Option.when(isKnown && slowest != Long.MaxValue)(slowest)
  }
}
