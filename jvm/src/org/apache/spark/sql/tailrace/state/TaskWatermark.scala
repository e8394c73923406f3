package org.apache.spark.sql.tailrace.state

import java.util.Arrays

import scala.util.Try

import org.apache.spark.network.util.JavaUtils
import org.apache.spark.sql.execution.datasources.v2.LowLatencyClock
import org.apache.spark.sql.internal.SQLConf

import tailrace.TailraceException

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
 * @param partitions  how many source partitions the epoch reads
 * @param delayMs     how late a row may be
 * @param idleAfterMs how long a partition that brings nothing is waited for
 */
private[tailrace] final class TaskWatermark(partitions: Int, delayMs: Long, idleAfterMs: Long) {
  private val newest = new Array[Long](partitions)
  Arrays.fill(newest, Long.MinValue)
  private val heardAt = new Array[Long](partitions)
  Arrays.fill(heardAt, LowLatencyClock.getClock.getTimeMillis())

  def sees(partition: Int, eventTimeMs: Long, atMs: Long): Unit = {
    heardAt(partition) = atMs
    if (eventTimeMs > newest(partition)) {
      newest(partition) = eventTimeMs
    }
  }

  /** None as long as a partition that may still bring rows has brought none. */
  def atMs(now: Long): Option[Long] = {
    var (slowest, waitedFor) = (Long.MaxValue, 0)
    var partition = 0
    while (partition < partitions) {
      if (now - heardAt(partition) < idleAfterMs) {
        waitedFor += 1
        slowest = math.min(slowest, newest(partition))
      }
      partition += 1
    }
    Option.when(waitedFor > 0 && slowest != Long.MinValue)(slowest - delayMs)
  }
}

private[tailrace] object TaskWatermark {
  val IdleAfterKey = "spark.tailrace.watermark.idleAfter"

  /** How long a silent partition is waited for; none if the watermark is to stand still within an epoch, as Spark has it. */
  def idleAfterMs(conf: SQLConf): Option[Long] = Option(conf.getConfString(IdleAfterKey, null)).map { text =>
    Try(JavaUtils.timeStringAsMs(text)).toOption.filter(_ > 0).getOrElse {
      throw new TailraceException(
        "TAILRACE_BAD_SETTING",
        s"$IdleAfterKey is '$text', which is no length of time above zero.",
        "write a number with a unit, for example 30s; or leave it out, and the watermark moves when an epoch ends.")
    }
  }
}
