package org.apache.spark.sql.tailrace.metrics

/**
 * A writer that writes in a thread of its own. If that fails, it interrupts the task: otherwise the query would learn
 * of it with the next row only, or at the end of the epoch.
 */
trait FailsInBackground {
  def backgroundFailure: Option[Throwable]

  /** Throws what failed in the background, instead of the interruption that it caused. */
  final def guarded(work: => Unit): Unit =
    try work
    catch {
      case failure: Throwable =>
        backgroundFailure.foreach { cause =>
          Thread.interrupted()
          throw cause
        }
        throw failure
    }
}
