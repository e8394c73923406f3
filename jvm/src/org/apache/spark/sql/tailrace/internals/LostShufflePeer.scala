package org.apache.spark.sql.tailrace.internals

import java.io.IOException
import java.util.concurrent.TimeUnit.{MILLISECONDS, SECONDS}

import org.apache.spark.{SparkException, TaskContext}

/**
 * A task that fails closes its connections. The tasks that it exchanged rows with then fail as well: with the loss of a
 * connection, which says nothing about the cause. The user is told what the driver hears first. So these tasks wait for
 * a moment: when the driver has heard of the cause, it kills them.
 */
private[tailrace] object LostShufflePeer {
  private val WaitNanos = SECONDS.toNanos(3)
  private val LooksEveryMs = 10L

  /** True if a task has lost the connection to one that writes for it. */
  def isWriter(failure: SparkException): Boolean =
    failure.getMessage != null && failure.getMessage.contains("streaming shuffle writer")

  /** True if a task has lost the connection to one that reads from it: Spark passes on what Netty says. */
  def isReader(failure: Throwable): Boolean = failure match {
    case _: IOException => failure.getStackTrace.exists(_.getClassName.startsWith("io.netty."))
    case _ => false
  }

  /** Waits for the cause; ends with the exception of a task that was killed, if it was. */
  def awaitCause(): Unit = {
    val context = TaskContext.get()
    if (context != null) {
      awaitKill(context)
      context.killTaskIfInterrupted()
    }
  }

  /** Makes a task wait for the cause if it fails because of a lost reader. To be called when the task begins. */
  def awaitCauseOfLostReader(context: TaskContext): Unit =
    // Listeners run in the task's thread, before the failure is reported.
    context.addTaskFailureListener { (failed: TaskContext, failure: Throwable) =>
      if (isReader(failure)) {
        try awaitKill(failed)
        catch { case _: InterruptedException => Thread.currentThread().interrupt() }
      }
    }

  private def awaitKill(context: TaskContext): Unit = {
    val began = System.nanoTime()
    while (!context.isInterrupted() && !context.isCompleted() && System.nanoTime() - began < WaitNanos) {
      MILLISECONDS.sleep(LooksEveryMs)
    }
  }
}
