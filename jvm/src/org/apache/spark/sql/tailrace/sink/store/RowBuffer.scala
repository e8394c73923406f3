package org.apache.spark.sql.tailrace.sink.store

import scala.collection.mutable

/**
 * Rows on their way from a task to the thread that writes them. If it is full, the task waits, and so reads no further.
 *
 * @param maxBytes of rows that wait; a single row may be larger
 */
private[sink] final class RowBuffer[R](maxRows: Int, maxBytes: Long, sizeOf: R => Int) {
  private val waiting = mutable.ArrayDeque.empty[R]
  private var waitingBytes = 0L
  private var beingWritten = 0
  private var isEnded = false
  private var failure: Throwable = _

  /** Waits for a place. Throws if rows could not be written. */
  def put(row: R): Unit = synchronized {
    rethrow()
    while (waiting.length >= maxRows || (waiting.nonEmpty && waitingBytes + sizeOf(row) > maxBytes)) {
      wait()
      rethrow()
    }
    waiting += row
    waitingBytes += sizeOf(row)
    if (waiting.length == 1) {
      notifyAll()
    }
  }

  /** Everything that waits, up to this many rows. Waits for the first one; empty if there will be none. */
  def take(atMost: Int): Seq[R] = synchronized {
    while (waiting.isEmpty && !isEnded) {
      wait()
    }
    val taken = waiting.take(atMost).toVector
    waiting.dropInPlace(taken.length)
    waitingBytes -= taken.iterator.map(sizeOf(_).toLong).sum
    beingWritten = taken.length
    notifyAll()
    taken
  }

  /** The rows of the last [[take]] have been written. */
  def written(): Unit = synchronized {
    beingWritten = 0
    notifyAll()
  }

  /** Returns when every row has been written. Throws if that failed. */
  def awaitWritten(): Unit = synchronized {
    while (failure == null && (waiting.nonEmpty || beingWritten > 0)) {
      wait()
    }
    rethrow()
  }

  def fail(reason: Throwable): Unit = synchronized {
    failure = reason
    waiting.clear()
    waitingBytes = 0L
    beingWritten = 0
    isEnded = true
    notifyAll()
  }

  /** No more rows are wanted; those that wait are given up. */
  def end(): Unit = synchronized {
    isEnded = true
    waiting.clear()
    notifyAll()
  }

  def failed: Option[Throwable] = synchronized(Option(failure))

  def rethrow(): Unit = failed.foreach(throw _)
}
