package org.apache.spark.sql.tailrace.operators.state

/** A state store that may not be open yet, because the epoch before still uses it. Its first use opens it. */
trait OpensLate {
  /** Returns when it is open. */
  def open(): Unit

  /** True while a thread waits in this store for the epoch before. */
  def isBeingOpened: Boolean
}

/** What a task waits for will not come, because its epoch was given up. The task is about to be cancelled. */
final class EpochGivenUp(message: String) extends IllegalStateException(message)
