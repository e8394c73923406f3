package org.apache.spark.sql.tailrace.epoch.drain

import org.apache.spark.sql.execution.streaming.RealTimeTrigger
import org.apache.spark.sql.execution.streaming.runtime.StreamingQueryWrapper

/**
 * The runs that are to end their open epoch now instead of when its time is over, and begin no other one. The driver
 * decides; other executors ask for it ([[DrainPoll]]).
 *
 * Once a run has been asked, its open epoch ends in any case: some of its readers may have seen the request and ended,
 * and their partitions would not be read until the others end as well. Withdrawing the request only lets the next epoch
 * begin.
 */
object Drains {
  /** Runs whose open epoch ends. */
  @volatile private var ending = Set.empty[String]

  /** Runs whose next epoch must not begin. */
  private var gated = Set.empty[String]
  private var held = Map.empty[String, Long]

  /** True if the open epoch of the run is to end. Looked at for each row. */
  def isAsked(run: String): Boolean = ending.contains(run)

  def all: Set[String] = ending

  /** In an executor: what the driver says. */
  private[epoch] def learn(runs: Set[String]): Unit = ending = runs

  // The following are the driver's.

  /** Sources give no more rows, so the epoch ends and is committed; no other one begins. */
  def ask(run: String): Unit = synchronized {
    ending += run
    gated += run
  }

  /** The next epoch may begin. */
  def withdraw(run: String): Unit = synchronized {
    gated -= run
    notifyAll()
  }

  /** The run is over. */
  private[epoch] def forget(run: String): Unit = synchronized {
    ending -= run
    withdraw(run)
  }

  def isRealTime(query: StreamingQueryWrapper): Boolean = query.streamingQuery.trigger.isInstanceOf[RealTimeTrigger]

  /** The epoch that the run would begin now if it were let; -1 while it is still busy with the one before. */
  def heldBefore(run: String): Long = synchronized(held.getOrElse(run, -1L))

  /**
   * In the query's own thread, before an epoch begins that has not been started ahead: returns at once, unless the run
   * is to be drained.
   */
  private[epoch] def passOrWait(run: String, epoch: Long): Unit = synchronized {
    if (gated.contains(run)) {
      held += run -> epoch
      // Ends by an interruption when the query is stopped.
      try while (gated.contains(run)) wait()
      finally held -= run
    }
    ending -= run
  }

  /** A new application begins. */
  def reset(): Unit = synchronized {
    ending = Set.empty
    gated = Set.empty
    notifyAll()
  }
}
