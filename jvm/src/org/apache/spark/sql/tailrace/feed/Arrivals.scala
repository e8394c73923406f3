package org.apache.spark.sql.tailrace.feed

import java.util.concurrent.LinkedBlockingQueue
import java.util.concurrent.TimeUnit.MILLISECONDS

import org.apache.spark.TaskContext
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.tailrace.provenance.{CurrentRow, Origin}
import org.apache.spark.util.UninterruptibleThread

/** Rows that another thread is to read, and what says where the row at hand came from. */
final class FollowedRows(rows: Iterator[InternalRow], val current: CurrentRow) extends Iterator[InternalRow] {
  override def hasNext: Boolean = rows.hasNext
  override def next(): InternalRow = rows.next()
}

object FollowedRows {
  /** What comes later in the task writes elsewhere where its rows came from. */
  def of(rows: RDD[InternalRow]): RDD[InternalRow] =
    rows.mapPartitionsInternal(new FollowedRows(_, CurrentRow.acrossThreads()._1))
}

/** A row that has come, and of which input. */
final class Arrival(val input: Int, val row: InternalRow, val origin: Origin)

/**
 * The rows of several inputs in the order in which they come. An input cannot be asked whether it has a row without waiting for
 * one, so each is read by a thread of its own.
 */
final class Arrivals(inputs: Seq[FollowedRows], name: String, context: TaskContext) {
  import Arrivals._

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
  def next(): Arrival = {
    var taken: Arrival = null
    while (taken == null && !hasEnded) {
      taken = nextWithin(LooksEveryMs)
    }
    taken
  }

  /** The next row; null if none comes for so long, or if there is none any more. */
  def nextWithin(waitMs: Long): Arrival = {
    // Without one of its inputs nothing that follows would be right, whoever asks.
    if (broken != null) {
      throw broken
    }
    queue.poll(waitMs, MILLISECONDS) match {
      case arrival: Arrival => arrival
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
  private final class Reader(rows: FollowedRows, input: Int)
      extends UninterruptibleThread(s"tailrace-$name-$input-${context.taskAttemptId()}") {
    setDaemon(true)

    override def run(): Unit = {
      TaskContext.setTaskContext(context)
      try {
        while (!stopping && rows.hasNext) {
          put(new Arrival(input, rows.next().copy(), rows.current.keep()))
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

object Arrivals {
  private object End
  private val Ahead = 1024
  private val LooksEveryMs = 50L
}
