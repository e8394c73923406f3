package org.apache.spark.sql.tailrace.sink.kafka

import java.util.concurrent.TimeUnit
import java.util.concurrent.locks.ReentrantLock

import scala.util.control.NonFatal

import org.apache.spark.internal.Logging
import org.apache.spark.sql.tailrace.internals.kafka.Producers.Producer

/**
 * Sends a task's rows in short transactions. A transaction starts with a row and is committed after a fixed interval by
 * a thread of its own, because no further row may come.
 */
final class Transactions(producer: Producer, intervalMs: Long, name: String) extends Logging {
  import Transactions._

  // Held while a transaction is started, written to, or committed.
  private val lock = new ReentrantLock
  private val changed = lock.newCondition()
  @volatile private var isOver = false
  private var isOpen = false
  private var openedAt = 0L
  private var failure: Throwable = _

  private val committer = new Thread(() => locked(commitInTime()), s"tailrace-transactions-$name")
  committer.setDaemon(true)
  committer.start()

  def send(row: Producer => Unit): Unit = locked {
    failIfFailed()
    if (!isOpen) {
      producer.beginTransaction()
      isOpen = true
      openedAt = System.nanoTime()
      changed.signalAll()
    }
    row(producer)
  }

  /** Commits the last transaction. */
  def finish(): Unit = locked {
    failIfFailed()
    commit()
    isOver = true
    changed.signalAll()
  }

  /**
   * Aborts the open transaction. Otherwise it would hold up everyone who reads committed records until the brokers
   * abort it, which by default takes a minute. Works in an interrupted thread too: a task that is killed calls this.
   */
  def abandon(): Unit = {
    isOver = true
    var interrupted = Thread.interrupted()
    val deadline = System.nanoTime() + AbortNanos
    while (committer.isAlive && System.nanoTime() < deadline) {
      try {
        // The committer holds the lock while it commits or aborts, and then sees that all is over.
        if (lock.tryLock(PollMs, TimeUnit.MILLISECONDS)) {
          try changed.signalAll()
          finally lock.unlock()
        }
        committer.join(PollMs)
      } catch {
        case _: InterruptedException => interrupted = true
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt()
    }
  }

  private def commit(): Unit = if (isOpen) {
    // Blocks until all its records are acknowledged.
    producer.commitTransaction()
    isOpen = false
  }

  private def commitInTime(): Unit = {
    while (!isOver && failure == null) {
      val leftNanos = openedAt + TimeUnit.MILLISECONDS.toNanos(intervalMs) - System.nanoTime()
      if (!isOpen) {
        changed.await()
      } else if (leftNanos > 0) {
        changed.awaitNanos(leftNanos)
      } else {
        try commit()
        catch { case thrown: Throwable => failure = thrown }
      }
    }
    if (isOpen) {
      abort()
    }
  }

  private def abort(): Unit =
    try producer.abortTransaction()
    catch {
      // A newer producer has fenced this one, and has aborted the transaction; or the brokers have to do it.
      case NonFatal(reason) => logInfo(s"The open transaction of $name was not aborted: $reason")
    }

  private def failIfFailed(): Unit = if (failure != null) {
    throw failure
  }

  private def locked[T](work: => T): T = {
    lock.lock()
    try work
    finally lock.unlock()
  }
}

private object Transactions {
  private val AbortNanos = TimeUnit.SECONDS.toNanos(5)
  private val PollMs = 10L
}
