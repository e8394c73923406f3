package org.apache.spark.sql.tailrace.sink.kafka

import java.util.concurrent.TimeUnit

import org.apache.spark.sql.tailrace.sink.dedup.WrittenRow

import tailrace.TailraceException

/**
 * Waits for records of a writer that was killed. The brokers have received them, or the operating system still sends
 * them, but they are not in the topic yet; without transactions nothing keeps them out. All are assumed to be there
 * when none has arrived for a while. If they keep arriving, their writer is alive.
 */
final class LateRecords private[kafka] (
    mayBeLate: WrittenRow => Boolean,
    private var isExpected: Boolean,
    nanoTime: () => Long = () => System.nanoTime()) {
  import LateRecords._

  private var lastNanos = 0L
  private var awaitedSince = Option.empty[Long]

  def start(): Unit = lastNanos = nanoTime()

  def observe(row: WrittenRow): Unit = if (mayBeLate(row)) {
    isExpected = true
    lastNanos = nanoTime()
  }

  /** To be asked when everything has been read that was in the topic at first. Throws if the wait has no end. */
  def isAwaited: Boolean = {
    val now = nanoTime()
    val isAwaited = isExpected && now - lastNanos < QuietNanos
    if (isAwaited) {
      awaitedSince = awaitedSince.orElse(Some(now))
      if (awaitedSince.exists(now - _ > LimitNanos)) {
        throw stillWritten
      }
    }
    isAwaited
  }
}

object LateRecords {
  private[kafka] val QuietNanos: Long = TimeUnit.SECONDS.toNanos(2)
  private[kafka] val LimitNanos: Long = TimeUnit.SECONDS.toNanos(30)

  /** The writers are fenced. */
  def none: LateRecords = new LateRecords(_ => false, isExpected = false)

  /** Any record of the open epoch means that the last run was killed in the middle of it. */
  def ofOlderRuns: LateRecords = new LateRecords(_ => true, isExpected = false)

  /** An earlier attempt of the task may have been lost with its executor. Other tasks keep writing. */
  def ofTask(task: Int): LateRecords = new LateRecords(_.mark.task == task, isExpected = true)

  private def stillWritten = new TailraceException(
    "TAILRACE_OUTPUT_STILL_WRITTEN",
    s"another run of the query has kept writing to its output for ${TimeUnit.NANOSECONDS.toSeconds(LimitNanos)} s " +
      "since this one started.",
    "end the other run: it uses the same checkpoint, or a copy of it. With " +
      ".option(\"transactionInterval\", \"20 ms\") a new run shuts it out.")
}
