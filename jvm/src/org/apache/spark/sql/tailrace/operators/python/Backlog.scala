package org.apache.spark.sql.tailrace.operators.python

import java.util.ArrayDeque
import java.util.concurrent.TimeUnit
import java.util.concurrent.locks.ReentrantLock

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.tailrace.origin.Origin

/** A row on its way to Python. */
private[python] final class PendingRow(val row: InternalRow, val origin: Origin) {
  def bytes: Int = row match {
    case unsafe: UnsafeRow => unsafe.getSizeInBytes
    case _ => Backlog.AssumedRowBytes
  }
}

/**
 * The rows of one message to Python; an empty one only asks the worker to fire its timers.
 *
 * @param expectsRows true if rows follow the batch that may be in the output; see [[Origin]]
 */
private[python] final class Batch(val entries: Array[PendingRow], val sentNanos: Long, val expectsRows: Boolean) {
  var unanswered: Int = entries.length
  val bytes: Long = entries.iterator.map(_.bytes.toLong).sum
}

/**
 * The rows between the source and the worker. All waiting rows go as one batch when the worker becomes idle: one row
 * under low load, many under high load. Every queue is bounded, so a slow function slows the source down.
 *
 * A batch is limited to what takes the function a few milliseconds, because the result of its first row leaves with
 * that of its last.
 *
 * @param keepsRows true if rows are kept until their results arrive
 * @param onDone    called with the nanoseconds for which the worker was busy with a batch
 * @param startsHeld true if all rows wait until [[release]]
 */
private[python] final class Backlog(
    maxRowsPerBatch: Int,
    keepsRows: Boolean,
    onDone: Long => Unit,
    nanoTime: () => Long = () => System.nanoTime(),
    startsHeld: Boolean = false) {
  import Backlog._

  private val lock = new ReentrantLock
  private val changed = lock.newCondition()
  private val waiting = new ArrayDeque[PendingRow]
  private var waitingBytes = 0L
  private val inFlight = new ArrayDeque[Batch]
  private var owedRows = 0L
  private var owedBytes = 0L
  private var held = startsHeld
  private var heldSinceNanos = Option.empty[Long]
  private var sending = false
  private var closed = false
  private var allSent = false
  private var rowsPerBatch = math.min(FirstRowsPerBatch, maxRowsPerBatch)
  private var lastTakenNanos = 0L

  def add(entry: PendingRow): Unit = locked {
    waiting.addLast(entry)
    waitingBytes += entry.bytes
    if (held && heldSinceNanos.isEmpty) {
      heldSinceNanos = Some(nanoTime())
    }
  }

  /** The worker can process rows now. */
  def release(): Unit = locked {
    held = false
    changed.signalAll()
  }

  /** Waits while the backlog is full; true if it still is, and the caller has to send rows first. */
  def awaitRoom(): Boolean = locked {
    while (!closed && isFull && !isClaimable) {
      changed.await()
    }
    !closed && isFull
  }

  /** Waits until all rows are sent; true if the caller has to send some. Once it returns false, ticks end as well. */
  def awaitAllSent(): Boolean = locked {
    while (!closed && (sending || !waiting.isEmpty) && !isClaimable) {
      changed.await()
    }
    val isLeft = !closed && !waiting.isEmpty
    allSent = !isLeft
    isLeft
  }

  /** True if the worker has no batch and waits for one. */
  def workerIsIdle: Boolean = locked(inFlight.isEmpty && !sending)

  /** The next batch to send, if the worker should get one and no other thread is sending. [[sent]] must follow. */
  def claim(): Option[Batch] = locked {
    if (!isClaimable) {
      None
    } else {
      sending = true
      val entries = take(math.min(rowsPerBatch, waiting.size))
      val batch = new Batch(entries, nanoTime(), entries.last.origin.expectsRows)
      inFlight.addLast(batch)
      if (keepsRows) {
        owedRows += batch.entries.length
        owedBytes += batch.bytes
      }
      Some(batch)
    }
  }

  /**
   * An empty batch to send before the waiting rows, unless the last batch in flight is one already.
   *
   * @param expectsRows what the input expects; asked before the call, so rows that came since then are waiting
   */
  def claimTick(expectsRows: Boolean): Option[Batch] = locked {
    val lastIsTick = !inFlight.isEmpty && inFlight.peekLast().entries.isEmpty
    if (closed || allSent || sending || inFlight.size > 1 || lastIsTick) {
      None
    } else {
      sending = true
      val next = waiting.peekFirst()
      val tick = new Batch(Array.empty, nanoTime(), if (next == null) expectsRows else next.origin.expectsRows)
      inFlight.addLast(tick)
      Some(tick)
    }
  }

  def sent(): Unit = locked {
    sending = false
    changed.signalAll()
  }

  /** So many results arrived; they answer rows in the order of sending. */
  def answered(results: Int): Unit = locked {
    var left = results
    while (left > 0 && !inFlight.isEmpty) {
      val batch = inFlight.peekFirst()
      val now = math.min(left, batch.unanswered)
      batch.unanswered -= now
      left -= now
      if (batch.unanswered == 0) {
        done(inFlight.pollFirst())
      }
    }
    changed.signalAll()
  }

  /** The worker has taken one batch, with or without results. */
  def taken(): Unit = locked {
    Option(inFlight.pollFirst()).foreach(done)
    changed.signalAll()
  }

  /** All results of a batch arrived, so its rows are no longer kept. */
  def settled(batch: Batch): Unit = locked {
    owedRows -= batch.entries.length
    owedBytes -= batch.bytes
    changed.signalAll()
  }

  /** True if rows are kept whose results have not arrived. */
  def owesResults: Boolean = locked(owedRows > 0)

  /** True if the function has taken so many rows without a result that it gets no more. */
  def holdsTooMany: Boolean = locked(inFlight.isEmpty && owesTooMany)

  /** The batch that the worker is busy with, if any. */
  def atWork: Option[Batch] = locked(Option(inFlight.peekFirst()))

  /** How long the worker has been busy with its current batch, or has let rows wait for its start. */
  def atWorkNanos: Long = locked {
    if (held) heldSinceNanos.fold(0L)(nanoTime() - _)
    else if (holdsTooMany) nanoTime() - lastTakenNanos
    else if (inFlight.isEmpty) 0
    else nanoTime() - math.max(inFlight.peekFirst().sentNanos, lastTakenNanos)
  }

  /** Ends all waiting; nothing is sent any more. */
  def close(): Unit = locked {
    closed = true
    changed.signalAll()
  }

  private def isFull: Boolean = waiting.size >= MaxWaitingRows || waitingBytes >= MaxWaitingBytes

  private def isClaimable: Boolean =
    !held && !sending && !waiting.isEmpty && !owesTooMany && (inFlight.isEmpty || isWorthASecond)

  /**
   * Under load, a second batch in flight keeps the worker busy when it is done with the first. A few rows had better
   * wait until then: more may arrive, and the cost of a batch equals that of many rows.
   */
  private def isWorthASecond: Boolean =
    inFlight.size == 1 && waiting.size >= math.min(rowsPerBatch, RowsWorthASecondBatch)

  private def owesTooMany: Boolean = owedRows >= MaxOwedRows || owedBytes >= MaxOwedBytes

  private def take(rows: Int): Array[PendingRow] = {
    val taken = Array.fill(rows)(waiting.pollFirst())
    waitingBytes -= taken.iterator.map(_.bytes.toLong).sum
    taken
  }

  private def done(batch: Batch): Unit = {
    val now = nanoTime()
    val busy = now - math.max(batch.sentNanos, lastTakenNanos)
    lastTakenNanos = now
    onDone(busy)
    val rows = batch.entries.length
    if (rows > 0 && busy > 2 * BatchNanos) {
      rowsPerBatch = math.max(1, (rows * BatchNanos / busy).toInt)
    } else if (busy < BatchNanos && rows >= rowsPerBatch) {
      rowsPerBatch = math.min(rowsPerBatch * 2, maxRowsPerBatch)
    }
  }

  private def locked[T](body: => T): T = {
    lock.lock()
    try body
    finally lock.unlock()
  }
}

private[python] object Backlog {

  private val RowsWorthASecondBatch = 256
  private val MaxWaitingRows = 4096
  private val MaxWaitingBytes = 4L << 20

  /** How many rows a function over an iterator may take without giving results. */
  private val MaxOwedRows = 65536
  private val MaxOwedBytes = 32L << 20

  private val FirstRowsPerBatch = 16
  private val BatchNanos = TimeUnit.MILLISECONDS.toNanos(5)
  private[python] val AssumedRowBytes = 256
}
