package org.apache.spark.sql.tailrace.sink.postgresql

import java.sql.{Connection, SQLException}
import java.util.{Arrays => JArrays, HashMap => JHashMap}
import java.util.concurrent.{CountDownLatch, TimeUnit}

import org.apache.kafka.clients.producer.Callback

import org.apache.spark.sql.tailrace.errors.BadRecordHandler
import org.apache.spark.sql.tailrace.origin.{RowId, SourcePartition, SourcePosition}

/**
 * A row that is to be written.
 *
 * @param observer called when it has been committed, unless null
 */
private[postgresql] final class PendingRow(
    val source: SourcePartition,
    val row: RowId,
    val keyHash: Long,
    val contentHash: Long,
    val key: Any,
    val values: Array[AnyRef],
    val bytes: Int,
    val observer: Callback)
    extends JournalRow {
  /** Null if time made it. */
  def position: SourcePosition = if (source.isMadeByTime) null else SourcePosition(source, row.offset)
}

/**
 * Writes a task's rows in a thread of its own. What waits when the last transaction has been committed goes as the next
 * one: a single row under low load, many under high load.
 */
private[postgresql] final class TransactionSender(
    target: EpochTarget,
    writer: WriterKey,
    badRecords: BadRecordHandler,
    started: Long) {
  import TransactionSender._

  private val options = target.options
  private val stopping = new CountDownLatch(1)
  private val retries = new Retries(options.server, options.retryMs, pause)
  private val statement = new WriteStatement(target, writer)
  private val buffer = new RowBuffer[PendingRow](
    BufferedBatches * options.batchRows,
    MaxBufferedBytes,
    (_: PendingRow).bytes)
  // Counts all transactions of the task in this epoch.
  private var sequence = started
  @volatile private var rejectedRows = 0L
  // Null when the task no longer waits for rows.
  private var task = Thread.currentThread()

  private val thread = new Thread(() => run(), s"tailrace-postgresql-${writer.task}")
  thread.setDaemon(true)
  thread.start()

  def transactions: Long = sequence - started

  def rejected: Long = rejectedRows

  /** Waits if too many rows are on their way. Throws if rows could not be written. */
  def send(row: PendingRow): Unit = buffer.put(row)

  def failure: Option[Throwable] = buffer.failed

  /** Returns when all rows have been committed, and keeps the connection for the next epoch. */
  def finish(): Unit = {
    leaveTaskAlone()
    buffer.awaitWritten()
    buffer.end()
    thread.join()
    retries.release()
  }

  /** Gives up the rows that have not been committed. What is under way may still be. */
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
    try Iterator.continually(buffer.take(options.batchRows)).takeWhile(_.nonEmpty).foreach { batch =>
        write(batch)
        buffer.written()
      }
    catch {
      case failure: SQLException => fail(SqlErrors.refused(options.server, failure))
      case failure: Throwable => fail(failure)
    }

  private def fail(reason: Throwable): Unit = {
    buffer.fail(reason)
    synchronized(Option(task).foreach(_.interrupt()))
  }

  private def leaveTaskAlone(): Unit = synchronized {
    task = null
  }

  /** Writes the rows without those that PostgreSQL rejects. */
  private def write(batch: Seq[PendingRow]): Unit =
    try {
      val number = sequence + 1
      retries.run(transaction(_, number, batch))
      sequence = number
      batch.foreach(row => if (row.observer != null) row.observer.onCompletion(null, null))
    } catch {
      case failure: SQLException if SqlErrors.isOfSomeRow(failure) =>
        if (batch.length == 1) {
          reject(batch.head, failure)
        } else {
          // Two transactions, in order: what is wrong with one row does not concern the others.
          val (first, second) = batch.splitAt(batch.length / 2)
          write(first)
          write(second)
        }
    }

  private def transaction(connection: Connection, number: Long, batch: Seq[PendingRow]): Unit = {
    val count = statement.execute(connection, number, batch, if (target.keys.isEmpty) batch else lastOfEachKey(batch))
    // A lost connection leaves it open whether the transaction was committed. Then it has been, and was sent again.
    if (count == 0 && !target.state.sequenceOf(connection, writer).contains(number)) {
      throw StateTables.taken()
    }
  }

  private def reject(row: PendingRow, failure: SQLException): Unit = {
    rejectedRows += 1
    badRecords.handle(row.position, SqlErrors.rejected(row.position, failure))
  }

  /** Ends early when the task is stopped. */
  private def pause(ms: Long): Unit = if (stopping.await(ms, TimeUnit.MILLISECONDS)) {
    throw new InterruptedException("stopped while the server was away")
  }
}

private[postgresql] object TransactionSender {
  private val BufferedBatches = 2
  private val MaxBufferedBytes = 16L * 1024 * 1024
  private val SettleMs = 3000L

  /**
   * A statement cannot change a row twice. Sorted, because two tasks that write the same keys in different orders would
   * wait for each other.
   */
  private[postgresql] def lastOfEachKey(batch: Seq[PendingRow]): Seq[PendingRow] =
    if (batch.length == 1) batch
    else {
      val last = new JHashMap[Any, PendingRow](2 * batch.length)
      batch.foreach(row => last.put(row.key, row))
      val rows = last.values().toArray(new Array[PendingRow](last.size))
      JArrays.sort(rows, (one: PendingRow, other: PendingRow) => java.lang.Long.compare(one.keyHash, other.keyHash))
      rows.toIndexedSeq
    }
}
