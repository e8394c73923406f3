package org.apache.spark.sql.tailrace.operators.input

import java.util.concurrent.LinkedBlockingQueue
import java.util.concurrent.TimeUnit.MILLISECONDS

import org.apache.spark.TaskContext
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.tailrace.origin.{CurrentRow, Origin}

/** Rows that another thread reads, with the [[CurrentRow]] that their operators write origins to. */
final class OriginTrackedRows(rows: Iterator[InternalRow], val current: CurrentRow) extends Iterator[InternalRow] {
  override def hasNext: Boolean = rows.hasNext
  override def next(): InternalRow = rows.next()
}

object OriginTrackedRows {

  /** Operators downstream in the same task get a [[CurrentRow]] of their own, because they run in another thread. */
  def of(rows: RDD[InternalRow]): RDD[InternalRow] =
    rows.mapPartitionsInternal(new OriginTrackedRows(_, CurrentRow.acrossThreads()._1))
}

/** A copied row, the index of the input it was read from, and its origin. */
final class InputRow(val input: Int, val row: InternalRow, val origin: Origin)

/**
 * The rows of one or more inputs in the order of their arrival. An input's `hasNext` blocks until a row arrives, so
 * each input is read by a thread of its own into one bounded queue.
 *
 * One thread at a time may take rows.
 */
final class ThreadFedInput(inputs: Seq[OriginTrackedRows], name: String, context: TaskContext) {
  import ThreadFedInput._

  private val queue = new LinkedBlockingQueue[AnyRef](Capacity)
  @volatile private var stopping = false
  // A failure of any input.
  @volatile private var failure: Throwable = _
  private var openInputs = inputs.length
  // The failure, once it has been reported at its place in the order of the rows.
  private var reported: Throwable = _

  private val readers = inputs.zipWithIndex.map { case (rows, input) => new Reader(rows, input) }
  // Listeners run last in, first out: this one runs before the sources are closed, which the readers still use.
  context.addTaskCompletionListener[Unit](_ => stop())
  readers.foreach(_.start())

  /** True if all inputs have ended and all of their rows have been taken. */
  def hasEnded: Boolean = openInputs == 0

  /** True if rows will soon arrive that may be in the output; see `CurrentRow`. Rows in the queue do not count. */
  def expectsRows: Boolean = inputs.exists(_.current.expectsRows)

  /** True if an input, rather than a consumer of its rows, failed with this exception. */
  def hasFailedWith(reason: Throwable): Boolean = failure != null && (reason eq failure)

  /** The next row; null once all inputs have ended. */
  def next(): InputRow = {
    var taken: InputRow = null
    while (taken == null && !hasEnded) {
      taken = nextWithin(PollMs)
    }
    taken
  }

  /** The next row; null if none arrives in time or if an input has ended. Throws if the task was killed meanwhile. */
  def nextWithin(waitMs: Long): InputRow = {
    val taken = poll(waitMs)
    if (taken == null) {
      context.killTaskIfInterrupted()
    }
    taken
  }

  /** As [[nextWithin]], for a thread that learns by other means that the task was killed. */
  def poll(waitMs: Long): InputRow = {
    // Results would be wrong without one of the inputs, so each further call fails as well.
    if (reported != null) {
      throw reported
    }
    queue.poll(waitMs, MILLISECONDS) match {
      case row: InputRow => row
      case null => null
      case _ if failure != null =>
        reported = failure
        throw reported
      case _ =>
        openInputs -= 1
        null
    }
  }

  private def put(item: AnyRef): Unit = while (!stopping && !queue.offer(item, PollMs, MILLISECONDS)) {}

  private def stop(): Unit = {
    stopping = true
    readers.foreach(_.interrupt())
    readers.foreach(UninterruptibleJoin(_))
  }

  private final class Reader(rows: OriginTrackedRows, input: Int)
      extends FeederThread(s"tailrace-$name-$input-${context.taskAttemptId()}", context) {

    override protected def feed(): Unit = {
      while (!stopping && rows.hasNext) {
        put(new InputRow(input, rows.next().copy(), rows.current.keep()))
      }
      put(InputEnd)
    }

    override protected def isStopping: Boolean = stopping

    override protected def failed(reason: Throwable): Unit = {
      failure = reason
      put(InputEnd)
    }
  }
}

object ThreadFedInput {
  private object InputEnd
  private val Capacity = 1024
  private val PollMs = 50L
}
