package org.apache.spark.sql.tailrace.sink.kafka

import java.util.concurrent.TimeUnit

import org.apache.spark.sql.tailrace.internals.kafka.Producers.Producer

/**
 * Sends a task's rows in short transactions. A transaction starts with a row and is committed after a fixed interval by
 * a thread of its own, because no further row may come.
 */
final class Transactions(producer: Producer, intervalMs: Long, name: String) {
  private var isOpen = false
  private var isOver = false
  private var openedAt = 0L
  private var failure: Throwable = _

  private val committer = new Thread(() => commitInTime(), s"tailrace-transactions-$name")
  committer.setDaemon(true)
  committer.start()

  def send(row: Producer => Unit): Unit = synchronized {
    failIfFailed()
    if (!isOpen) {
      producer.beginTransaction()
      isOpen = true
      openedAt = System.nanoTime()
      notifyAll()
    }
    row(producer)
  }

  /** Commits the last transaction. */
  def finish(): Unit = {
    synchronized {
      failIfFailed()
      commit()
    }
    end()
  }

  /** Leaves the open transaction to be aborted. */
  def abandon(): Unit = end()

  private def end(): Unit = synchronized {
    isOver = true
    notifyAll()
  }

  private def commit(): Unit = if (isOpen) {
    // Blocks until all its records are acknowledged.
    producer.commitTransaction()
    isOpen = false
  }

  private def commitInTime(): Unit = synchronized {
    while (!isOver && failure == null) {
      val leftNanos = openedAt + TimeUnit.MILLISECONDS.toNanos(intervalMs) - System.nanoTime()
      if (!isOpen) {
        wait()
      } else if (leftNanos > 0) {
        TimeUnit.NANOSECONDS.timedWait(this, leftNanos)
      } else {
        try commit()
        catch { case thrown: Throwable => failure = thrown }
      }
    }
  }

  private def failIfFailed(): Unit = if (failure != null) {
    throw failure
  }
}
