package org.apache.spark.sql.tailrace.internals

import java.io.IOException
import java.nio.channels.ClosedChannelException
import java.util.concurrent.TimeUnit.SECONDS

import org.apache.spark.{SparkException, TaskContext, TaskContextImpl}
import org.apache.spark.util.TaskFailureListener

class LostShufflePeerSuite extends munit.FunSuite {
  private val soon = SECONDS.toMillis(60)

  /** What Netty reports of a closed channel, which has no stack trace but this element. */
  private def closedChannel(): Throwable = {
    val failure = new ClosedChannelException
    failure.setStackTrace(Array(new StackTraceElement(
      "io.netty.channel.AbstractChannel$AbstractUnsafe",
      "write",
      null,
      -1)))
    failure
  }

  private def failing(context: TaskContextImpl, failure: Throwable): Thread = {
    LostShufflePeer.awaitCauseOfLostReader(context)
    val task = new Thread(() => context.markTaskFailed(failure))
    task.start()
    task
  }

  test("a writer of a lost reader waits until it is killed") {
    val context = TaskContext.empty()
    val task = failing(context, closedChannel())
    task.join(200)
    assert(task.isAlive, "it did not wait")
    context.markInterrupted("the cause is known")
    task.join(soon)
    assert(!task.isAlive)
  }

  test("an interrupt ends the wait and is kept") {
    val context = TaskContext.empty()
    @volatile var wasInterrupted = false
    val notes: TaskFailureListener = (_, _) => wasInterrupted = Thread.interrupted()
    context.addTaskFailureListener(notes)
    val task = failing(context, closedChannel())
    task.interrupt()
    task.join(soon)
    assert(!task.isAlive)
    assert(wasInterrupted)
  }

  test("other failures are not held up") {
    for (failure <- Seq(new IOException("disk full"), new IllegalStateException("a bug"))) {
      assert(!LostShufflePeer.isReader(failure))
    }
    assert(LostShufflePeer.isReader(closedChannel()))
  }

  test("a lost writer is recognized by Spark's text") {
    assert(LostShufflePeer.isWriter(new SparkException("Connection to streaming shuffle writer 3 closed", null)))
    assert(!LostShufflePeer.isWriter(new SparkException("Task failed", null)))
  }
}
