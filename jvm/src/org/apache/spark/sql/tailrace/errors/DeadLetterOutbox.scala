package org.apache.spark.sql.tailrace.errors

import java.util.ArrayDeque
import java.util.concurrent.{ExecutionException, Future}

import org.apache.spark.TaskContext
import org.apache.spark.util.ThreadUtils

/**
 * Sends the dead letters of a task in a thread of its own, so good records do not wait for the brokers. A task must
 * [[flush]] before it ends: only then its offsets are committed.
 */
private[errors] final class DeadLetterOutbox(context: TaskContext) {
  import DeadLetterOutbox._

  private val sender = ThreadUtils.newDaemonSingleThreadExecutor(s"tailrace-dead-letters-${context.taskAttemptId()}")
  private val unsent = new ArrayDeque[Future[_]]
  @volatile private var failure: Throwable = _

  context.addTaskCompletionListener[Unit](_ => sender.shutdownNow())

  /** Returns at once, unless many letters wait. Throws if an earlier one could not be sent. */
  def add(send: () => Unit): Unit = synchronized {
    rethrowFailure()
    while (!unsent.isEmpty && (unsent.peek().isDone || unsent.size >= MaxUnsent)) {
      await(unsent.poll())
    }
    unsent.add(sender.submit[Unit](() => deliver(send)))
  }

  /** Returns when the brokers have acknowledged all letters. */
  def flush(): Unit = synchronized {
    while (!unsent.isEmpty) {
      await(unsent.poll())
    }
    rethrowFailure()
  }

  /** Throws if a letter could not be sent. */
  def rethrowFailure(): Unit = if (failure != null) {
    throw failure
  }

  private def deliver(send: () => Unit): Unit =
    try send()
    catch {
      case reason: Throwable =>
        failure = reason
        throw reason
    }

  private def await(letter: Future[_]): Unit =
    try letter.get()
    catch { case failed: ExecutionException => throw failed.getCause }
}

private object DeadLetterOutbox {
  private val MaxUnsent = 1000
}
