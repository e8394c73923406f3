package org.apache.spark.sql.tailrace.internals

import java.util.concurrent.TimeUnit.{MILLISECONDS, SECONDS}

import org.apache.spark.{SparkException, TaskContext}

/**
 * A task that fails closes its connections, and those who read from it fail as well: with the loss of a connection,
 * which says nothing of the cause. What the driver hears first is what the user is told. So they wait for a moment:
 * when the driver has heard of the cause, it kills them.
 */
private[tailrace] object LostShuffleWriter {
  private val WaitNanos = SECONDS.toNanos(3)
  private val LooksEveryMs = 10L

  def isBehind(failure: SparkException): Boolean =
    failure.getMessage != null && failure.getMessage.contains("streaming shuffle writer")

  /** Ends with the exception of a task that was killed, if it was. */
  def letItSpeak(): Unit = {
    val context = TaskContext.get()
    val began = System.nanoTime()
    while (context != null && !context.isCompleted() && System.nanoTime() - began < WaitNanos) {
      context.killTaskIfInterrupted()
      MILLISECONDS.sleep(LooksEveryMs)
    }
  }
}
