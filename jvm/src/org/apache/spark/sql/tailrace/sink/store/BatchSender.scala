package org.apache.spark.sql.tailrace.sink.store

import java.util.concurrent.{CountDownLatch, TimeUnit}

import org.apache.spark.sql.tailrace.errors.BadRecordHandler

/**
 * Writes a task's rows in a thread of its own. What waits when the last batch has been written goes as the next one: a
 * single row under low load, many under high load.
 *
 * @param started how many batches the task has written before
 */
private[sink] final class BatchSender[C, R <: StoreRow](
    store: Store[C, R],
    writer: WriterKey,
    badRecords: BadRecordHandler,
    started: Long) {
  import BatchSender._

  private val server = store.server
  private val stopping = new CountDownLatch(1)
  private val retries = new Retries[C](server, store.retryMs, pause)
  private val batches = store.newBatchWriter(writer)
  private val buffer = new RowBuffer[PendingRow[R]](
    BufferedBatches * store.batchRows,
    MaxBufferedBytes,
    (_: PendingRow[R]).content.bytes)
  // Counts all batches of the task in this epoch.
  private var sequence = started
  @volatile private var rejectedRows = 0L
  // Null when the task no longer waits for rows.
  private var task = Thread.currentThread()

  private val thread = new Thread(() => run(), s"tailrace-sink-${writer.task}")
  thread.setDaemon(true)
  thread.start()

  def lastSequence: Long = sequence

  def transactions: Long = sequence - started

  def rejected: Long = rejectedRows

  /** Waits if too many rows are on their way. Throws if rows could not be written. */
  def send(row: PendingRow[R]): Unit = buffer.put(row)

  def failure: Option[Throwable] = buffer.failed

  /** Returns when all rows have been written, and keeps the connection for the next epoch. */
  def finish(): Unit = {
    leaveTaskAlone()
    buffer.awaitWritten()
    buffer.end()
    thread.join()
    retries.release()
  }

  /** Gives up the rows that have not been written. What is under way may still be. */
  def abandon(): Unit = {
    leaveTaskAlone()
    buffer.end()
    stopping.countDown()
    if (!hasEnded()) {
      retries.abort()
    }
    if (hasEnded()) {
      retries.disconnect()
    }
  }

  /** Waits for the thread for a while, even if the task is interrupted, as it is when the query is stopped. */
  private def hasEnded(): Boolean = {
    var interrupted = Thread.interrupted()
    val until = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(SettleMs)
    while (thread.isAlive && System.nanoTime() < until) {
      try thread.join(SettleMs)
      catch { case _: InterruptedException => interrupted = true }
    }
    if (interrupted) {
      Thread.currentThread().interrupt()
    }
    !thread.isAlive
  }

  private def run(): Unit =
    try Iterator.continually(buffer.take(store.batchRows)).takeWhile(_.nonEmpty).foreach { batch =>
        writeValid(batch)
        buffer.written()
      }
    catch {
      case failure: Exception if server.isOwnFailure(failure) => fail(server.refused(failure))
      case failure: Throwable => fail(failure)
    }

  private def fail(reason: Throwable): Unit = {
    buffer.fail(reason)
    synchronized(Option(task).foreach(_.interrupt()))
  }

  private def leaveTaskAlone(): Unit = synchronized {
    task = null
  }

  private def writeValid(batch: Seq[PendingRow[R]]): Unit =
    if (batch.forall(_.content.problem.isEmpty)) write(batch)
    else {
      val (invalid, valid) = batch.partition(_.content.problem.nonEmpty)
      if (valid.nonEmpty) {
        write(valid)
      }
      invalid.foreach(row => reject(row, new IllegalArgumentException(row.content.problem.get)))
    }

  /** Writes the rows without those that the store rejects. */
  private def write(batch: Seq[PendingRow[R]]): Unit =
    try {
      val number = sequence + 1
      val rejected = retries.run(batches.write(_, number, batch))
      sequence = number
      val isRejected = rejected.map(_._1).toSet
      batch.foreach(row => if (row.observer != null && !isRejected(row)) row.observer.onCompletion(null, null))
      rejected.foreach { case (row, failure) => reject(row, failure) }
    } catch {
      case failure: Exception if server.isOfSomeRow(failure) =>
        if (batch.length == 1) {
          reject(batch.head, failure)
        } else {
          // Two batches, in order: what is wrong with one row does not concern the others.
          val (first, second) = batch.splitAt(batch.length / 2)
          write(first)
          write(second)
        }
    }

  private def reject(row: PendingRow[R], failure: Throwable): Unit = {
    rejectedRows += 1
    badRecords.handle(row.position, server.rejected(row.position, failure))
  }

  /** Ends early when the task is stopped. */
  private def pause(ms: Long): Unit = if (stopping.await(ms, TimeUnit.MILLISECONDS)) {
    throw new InterruptedException("stopped while the server was away")
  }
}

private[sink] object BatchSender {
  private val BufferedBatches = 2
  private val MaxBufferedBytes = 16L * 1024 * 1024
  private val SettleMs = 3000L
}
