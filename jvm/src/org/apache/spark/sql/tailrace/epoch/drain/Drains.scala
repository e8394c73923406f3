package org.apache.spark.sql.tailrace.epoch.drain

import org.apache.spark.sql.execution.streaming.RealTimeTrigger
import org.apache.spark.sql.execution.streaming.runtime.StreamingQueryWrapper

/**
 * The runs that are to end their open epoch now instead of when its time is over. The driver decides; other executors
 * ask for it ([[DrainPoll]]).
 */
object Drains {
  @volatile private var asked = Set.empty[String]
  private var held = Map.empty[String, Long]

  /** Looked at for each row. */
  def isAsked(run: String): Boolean = asked.contains(run)

  def all: Set[String] = asked

  /** In an executor: what the driver says. */
  private[epoch] def learn(runs: Set[String]): Unit = asked = runs

  // The following are the driver's.

  /** Sources give no more rows, so that the epoch ends and is committed; no other one begins. */
  def ask(run: String): Unit = synchronized(asked += run)

  /** Go on as if nobody had asked; also when the run is over. */
  def withdraw(run: String): Unit = synchronized {
    asked -= run
    notifyAll()
  }

  def isRealTime(query: StreamingQueryWrapper): Boolean = query.streamingQuery.trigger.isInstanceOf[RealTimeTrigger]

  /** The epoch that the run would begin now if it were let; -1 while it is still busy with the one before. */
  def heldBefore(run: String): Long = synchronized(held.getOrElse(run, -1L))

  /** In the query's own thread: returns at once, unless the run is to be drained. */
  private[epoch] def passOrWait(run: String, epoch: Long): Unit = synchronized {
    if (isAsked(run)) {
      held += run -> epoch
      // Ends by an interruption when the query is stopped.
      try while (isAsked(run)) wait()
      finally held -= run
    }
  }

  /** A new application begins. */
  def reset(): Unit = synchronized {
    asked = Set.empty
    notifyAll()
  }
}
