package org.apache.spark.sql.tailrace.join

import java.util.concurrent.LinkedBlockingQueue
import java.util.concurrent.TimeUnit.MILLISECONDS

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.tailrace.provenance.{CurrentRow, Origin}
import org.apache.spark.util.UninterruptibleThread

/** The rows of one side, and what says where the row at hand came from. */
private[join] final class SideRows(rows: Iterator[InternalRow], val current: CurrentRow) extends Iterator[InternalRow] {
  override def hasNext: Boolean = rows.hasNext
  override def next(): InternalRow = rows.next()
}

/** A row that has come to the join. */
private[join] final class Arrival(val isLeft: Boolean, val row: UnsafeRow, val origin: Origin)

/**
 * The rows of both sides in the order in which they come. Neither side can be asked whether it has a row without waiting for
 * one, so each is read by a thread of its own.
 */
private[join] final class Arrivals(left: SideRows, right: SideRows, context: TaskContext) {
  import Arrivals._

  private val queue = new LinkedBlockingQueue[AnyRef](Ahead)
  @volatile private var stopping = false
  @volatile private var failure: Throwable = _
  private var open = 2

  private val readers = Seq(new Reader(left, isLeft = true), new Reader(right, isLeft = false))
  // Listeners run last in, first out: this one before the sources are closed, which the threads still read.
  context.addTaskCompletionListener[Unit](_ => stop())
  readers.foreach(_.start())

  /** The next row; null when both sides have ended. */
  def next(): Arrival = {
    var taken: Arrival = null
    while (taken == null && open > 0) {
      queue.poll(LooksEveryMs, MILLISECONDS) match {
        case arrival: Arrival => taken = arrival
        case null => context.killTaskIfInterrupted()
        case _ if failure != null => throw failure
        case _ => open -= 1
      }
    }
    taken
  }

  private def put(one: AnyRef): Unit = while (!stopping && !queue.offer(one, LooksEveryMs, MILLISECONDS)) {}

  private def stop(): Unit = {
    stopping = true
    readers.foreach(_.interrupt())
    readers.foreach(reader => while (reader.isAlive) reader.join(LooksEveryMs))
  }

  // Kafka's consumer can hang when its thread is interrupted at the wrong moment; this kind of thread spares it.
  private final class Reader(rows: SideRows, isLeft: Boolean)
      extends UninterruptibleThread(s"tailrace-join-${if (isLeft) "left" else "right"}-${context.taskAttemptId()}") {
    setDaemon(true)

    override def run(): Unit = {
      TaskContext.setTaskContext(context)
      try {
        while (!stopping && rows.hasNext) {
          val row = rows.next().copy().asInstanceOf[UnsafeRow]
          put(new Arrival(isLeft, row, rows.current.keep()))
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

private[join] object Arrivals {
  private object End
  private val Ahead = 1024
  private val LooksEveryMs = 50L
}
