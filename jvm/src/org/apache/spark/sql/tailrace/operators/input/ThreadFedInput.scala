package org.apache.spark.sql.tailrace.operators.input

import java.util.concurrent.LinkedBlockingQueue
import java.util.concurrent.TimeUnit.MILLISECONDS

import org.apache.spark.TaskContext
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.util.UninterruptibleThread
import org.apache.spark.sql.tailrace.origin.{CurrentRow, Origin}

/** Rows that another thread is to read, and what says where the row at hand came from. */
final class OriginTrackedRows(rows: Iterator[InternalRow], val current: CurrentRow) extends Iterator[InternalRow] {
  override def hasNext: Boolean = rows.hasNext
  override def next(): InternalRow = rows.next()
}

object OriginTrackedRows {
  /** What comes later in the task writes elsewhere where its rows came from. */
  def of(rows: RDD[InternalRow]): RDD[InternalRow] =
    rows.mapPartitionsInternal(new OriginTrackedRows(_, CurrentRow.acrossThreads()._1))
}

/** A row that has come, and of which input. */
final class InputRow(val input: Int, val row: InternalRow, val origin: Origin)

/**
 * The rows of several inputs in the order in which they come. An input cannot be asked whether it has a row without waiting for
 * one, so each is read by a thread of its own.
 */
final class ThreadFedInput(inputs: Seq[OriginTrackedRows], name: String, context: TaskContext) {
  import ThreadFedInput._

  private val queue = new LinkedBlockingQueue[AnyRef](Ahead)
  @volatile private var stopping = false
  @volatile private var failure: Throwable = _
  private var open = inputs.length
  private var broken: Throwable = _

  private val readers = inputs.zipWithIndex.map { case (rows, input) => new Reader(rows, input) }
  // Listeners run last in, first out: this one before the sources are closed, which the threads still read.
  context.addTaskCompletionListener[Unit](_ => stop())
  readers.foreach(_.start())

  /** Whether all inputs have ended and their rows have been taken. */
  def hasEnded: Boolean = open == 0

  /** The next row; null when all inputs have ended. */
  def next(): InputRow = {
    var taken: InputRow = null
    while (taken == null && !hasEnded) {
      taken = nextWithin(LooksEveryMs)
    }
    taken
  }

  /** The next row; null if none comes for so long, or if there is none any more. */
  def nextWithin(waitMs: Long): InputRow = {
    // Without one of its inputs nothing that follows would be right, whoever asks.
    if (broken != null) {
      throw broken
    }
    queue.poll(waitMs, MILLISECONDS) match {
      case arrival: InputRow => arrival
      case null =>
        context.killTaskIfInterrupted()
        null
      case _ if failure != null =>
        broken = failure
        throw broken
      case _ =>
        open -= 1
        null
    }
  }

  private def put(one: AnyRef): Unit = while (!stopping && !queue.offer(one, LooksEveryMs, MILLISECONDS)) {}

  private def stop(): Unit = {
    stopping = true
    readers.foreach(_.interrupt())
    readers.foreach(reader => while (reader.isAlive) reader.join(LooksEveryMs))
  }

  // Kafka's consumer can hang when its thread is interrupted at the wrong moment; this kind of thread spares it.
  private final class Reader(rows: OriginTrackedRows, input: Int)
      extends UninterruptibleThread(s"tailrace-$name-$input-${context.taskAttemptId()}") {
    setDaemon(true)

    override def run(): Unit = {
      TaskContext.setTaskContext(context)
      try {
        while (!stopping && rows.hasNext) {
          put(new InputRow(input, rows.next().copy(), rows.current.keep()))
        }
        put(End)
      } catch {
        case reason: Throwable if !stopping =>
          failure = reason
          put(End)
        case _: Throwable =>
      } finally {
        TaskContext.unset()
      }
    }
  }
}

object ThreadFedInput {
  private object End
  private val Ahead = 1024
  private val LooksEveryMs = 50L
}
