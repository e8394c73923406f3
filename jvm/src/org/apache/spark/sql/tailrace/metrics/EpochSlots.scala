package org.apache.spark.sql.tailrace.metrics

import scala.collection.mutable

/**
 * On the driver: the task slots that each real-time run holds. Between two epochs a run has no tasks, but needs its
 * slots again at once.
 */
object EpochSlots {
  private val running = mutable.HashMap.empty[String, Map[Int, Int]]
  private val last = mutable.HashMap.empty[String, Int]

  /** The tasks of the last job that a run has started; zero if it has not started one. */
  def of(run: String): Int = synchronized(last.getOrElse(run, 0))

  /** All runs together. */
  def held: Int = synchronized {
    last.map { case (run, tasks) => math.max(tasks, running.get(run).fold(0)(_.values.sum)) }.sum
  }

  private[metrics] def jobStarted(run: String, job: Int, tasks: Int): Unit = synchronized {
    running(run) = running.getOrElse(run, Map.empty) + (job -> tasks)
    last(run) = tasks
  }

  private[metrics] def jobEnded(run: String, job: Int): Unit = synchronized {
    running(run) = running.getOrElse(run, Map.empty) - job
  }

  private[metrics] def ended(run: String): Unit = synchronized {
    running.remove(run)
    last.remove(run)
  }

  private[metrics] def reset(): Unit = synchronized {
    running.clear()
    last.clear()
  }
}
