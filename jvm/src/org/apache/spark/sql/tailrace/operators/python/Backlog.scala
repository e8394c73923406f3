package org.apache.spark.sql.tailrace.operators.python

import java.util.ArrayDeque
import java.util.concurrent.TimeUnit
import java.util.concurrent.locks.ReentrantLock

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.tailrace.origin.Origin

/** A row on its way to Python. */
private[python] final class Waiting(val row: InternalRow, val origin: Origin) {
  def bytes: Int = row match {
    case unsafe: UnsafeRow => unsafe.getSizeInBytes
    case _ => Backlog.AssumedRowBytes
  }
}

/** Rows that went to Python together; none if it was only to look after its timers. */
private[python] final class Batch(val entries: Array[Waiting], val sentNanos: Long) {
  var unanswered: Int = entries.length
  val bytes: Long = entries.iterator.map(_.bytes.toLong).sum
}

/**
 * The rows between the source and the worker. What is waiting goes as one batch when the worker has nothing to do: one
 * row under low load, many under high load. Everything here is bounded, so that a slow function slows the source down.
 *
 * A batch is also kept so short that it takes the function a few milliseconds, because the result of its first row
 * leaves with that of its last.
 *
 * @param keepsRows whether rows are remembered until their results are there
 * @param onDone    told how many nanoseconds the worker was busy with a batch
 */
private[python] final class Backlog(
    maxRowsPerBatch: Int,
    keepsRows: Boolean,
    onDone: Long => Unit,
    nanoTime: () => Long = () => System.nanoTime()) {
  import Backlog._

  private val lock = new ReentrantLock
  private val changed = lock.newCondition()
  private val waiting = new ArrayDeque[Waiting]
  private var waitingBytes = 0L
  private val inFlight = new ArrayDeque[Batch]
  private var owedRows = 0L
  private var owedBytes = 0L
  private var sending = false
  private var closed = false
  private var allSent = false
  private var rowsPerBatch = math.min(FirstRowsPerBatch, maxRowsPerBatch)
  private var lastTakenNanos = 0L

  def add(entry: Waiting): Unit = locked {
    waiting.addLast(entry)
    waitingBytes += entry.bytes
  }

  /** Waits while the source has to; true if that is because rows are to be sent first. */
  def awaitRoom(): Boolean = locked {
    while (!closed && isFull && !isClaimable) {
      changed.await()
    }
    !closed && isFull
  }

  /** Waits until everything is sent; true if this thread has to do some of it. Then there are no ticks any more either. */
  def awaitAllSent(): Boolean = locked {
    while (!closed && (sending || !waiting.isEmpty) && !isClaimable) {
      changed.await()
    }
    val isLeft = !closed && !waiting.isEmpty
    allSent = !isLeft
    isLeft
  }

  /** Whether nothing is with the worker, which then waits for input. */
  def workerIsIdle: Boolean = locked(inFlight.isEmpty && !sending)

  /** The next batch to send, if the worker may have one and nobody else is sending; then [[sent]] must follow. */
  def claim(): Option[Batch] = locked {
    if (!isClaimable) {
      None
    } else {
      sending = true
      val batch = new Batch(take(math.min(rowsPerBatch, waiting.size)), nanoTime())
      inFlight.addLast(batch)
      if (keepsRows) {
        owedRows += batch.entries.length
        owedBytes += batch.bytes
      }
      Some(batch)
    }
  }

  /** An empty batch, if there is none on its way; it goes before the rows that are waiting. */
  def claimTick(): Option[Batch] = locked {
    if (closed || allSent || sending || inFlight.size > 1 || (!inFlight.isEmpty && inFlight.peekLast().entries.isEmpty)) {
      None
    } else {
      sending = true
      val tick = new Batch(Array.empty, nanoTime())
      inFlight.addLast(tick)
      Some(tick)
    }
  }

  def sent(): Unit = locked {
    sending = false
    changed.signalAll()
  }

  /** As many results came, in the order of the rows and of the batches. */
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

  /** The worker has taken in one batch, whatever comes of it. */
  def taken(): Unit = locked {
    Option(inFlight.pollFirst()).foreach(done)
    changed.signalAll()
  }

  /** The results of a batch are there, and its rows need not be remembered any more. */
  def settled(batch: Batch): Unit = locked {
    owedRows -= batch.entries.length
    owedBytes -= batch.bytes
    changed.signalAll()
  }

  /** Whether rows are remembered whose results have not come. */
  def owesResults: Boolean = locked(owedRows > 0)

  /** Whether the function has taken in so many rows without giving a result that it gets no more. */
  def holdsTooMany: Boolean = locked(inFlight.isEmpty && owesTooMany)

  /** The batch that the worker is busy with. */
  def atWork: Option[Batch] = locked(Option(inFlight.peekFirst()))

  /** How long the worker has been busy with it. */
  def atWorkNanos: Long = locked {
    if (holdsTooMany) nanoTime() - lastTakenNanos
    else if (inFlight.isEmpty) 0
    else nanoTime() - math.max(inFlight.peekFirst().sentNanos, lastTakenNanos)
  }

  /** Nobody sends any more. */
  def close(): Unit = locked {
    closed = true
    changed.signalAll()
  }

  private def isFull: Boolean = waiting.size >= MaxWaitingRows || waitingBytes >= MaxWaitingBytes

  private def isClaimable: Boolean =
    !sending && !waiting.isEmpty && !owesTooMany && (inFlight.isEmpty || isWorthASecond)

  /**
   * A second batch, which the worker finds when it is done with the first, keeps it busy under load. A few rows are
   * better sent when it is done: by then they may be more, and each batch costs it as much as many rows.
   */
  private def isWorthASecond: Boolean =
    inFlight.size == 1 && waiting.size >= math.min(rowsPerBatch, RowsWorthASecondBatch)

  private def owesTooMany: Boolean = owedRows >= MaxOwedRows || owedBytes >= MaxOwedBytes

  private def take(rows: Int): Array[Waiting] = {
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

  /** Rows whose results a function over an iterator may hold back. */
  private val MaxOwedRows = 65536
  private val MaxOwedBytes = 32L << 20

  private val FirstRowsPerBatch = 16
  private val BatchNanos = TimeUnit.MILLISECONDS.toNanos(5)
  private[python] val AssumedRowBytes = 256
}
