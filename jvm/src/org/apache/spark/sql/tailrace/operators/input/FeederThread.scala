package org.apache.spark.sql.tailrace.operators.input

import scala.util.control.NonFatal

import org.apache.spark.TaskContext
import org.apache.spark.util.UninterruptibleThread

/**
 * A thread that reads the input of a task for the task. The code that starts one must interrupt it and wait for it,
 * with [[UninterruptibleJoin]], before the source is closed. Task completion listeners run last in, first out, so a
 * listener that is added after the source's own is early enough.
 *
 * Kafka's consumer can hang when its thread is interrupted at the wrong moment; an `UninterruptibleThread` protects it.
 */
abstract class FeederThread(name: String, context: TaskContext) extends UninterruptibleThread(name) {
  setDaemon(true)

  /** Reads the input to its end. */
  protected def feed(): Unit

  /** True once the task no longer wants the input; [[feed]] should then return, and its failures are ignored. */
  protected def isStopping: Boolean

  /** Hands a failure of [[feed]] to the thread that uses the rows. */
  protected def failed(reason: Throwable): Unit

  final override def run(): Unit = {
    TaskContext.setTaskContext(context)
    try {
      try feed()
      catch { case reason: Throwable if !isStopping => failed(reason) }
    } catch {
      case _: InterruptedException if isStopping =>
      case NonFatal(_) if isStopping =>
    } finally {
      TaskContext.unset()
    }
  }
}

/** Waits for a thread to end, even in a thread that is interrupted; the interruption is restored afterwards. */
object UninterruptibleJoin {
  def apply(thread: Thread): Unit = {
    var interrupted = Thread.interrupted()
    while (thread.isAlive && (thread ne Thread.currentThread())) {
      try thread.join()
      catch { case _: InterruptedException => interrupted = true }
    }
    if (interrupted) {
      Thread.currentThread().interrupt()
    }
  }
}
