package org.apache.spark.sql.tailrace.operators.python

import java.io.{DataOutputStream, IOException}
import java.nio.ByteBuffer

import org.apache.spark.TaskContext
import org.apache.spark.util.DirectByteBufferOutputStream
import org.apache.spark.sql.tailrace.errors.BadRecordHandler
import org.apache.spark.sql.tailrace.origin.CurrentRow

/**
 * Sends the worker its command, batches, timer ticks and the end of the input. The feeder and the reader both send
 * batches; the [[Backlog]] lets only one of them send at a time.
 *
 * @param sentRows where rows wait for their results, if results are joined with them
 * @param inputRow knows the source partitions, to name the record at which an argument expression failed
 */
private[python] final class BatchSender(
    protocol: WorkerProtocol,
    channel: WorkerChannel,
    backlog: Backlog,
    lifecycle: ExchangeLifecycle,
    ticks: TimerTicks,
    sentRows: Option[SentRows],
    inputRow: CurrentRow,
    context: TaskContext) {
  private val buffer = new DirectByteBufferOutputStream(BatchSender.BufferBytes)

  def sendCommand(command: ByteBuffer): Unit = {
    send(command)
    sendMessage(protocol.start)
    lifecycle.commandSent()
    // The reader may have waited for rows that it can send only from now on.
    channel.wakeReader()
  }

  /** Sends a tick or a batch if the worker should get one now; false if it should not. */
  def sendNext(): Boolean = {
    val next =
      if (!lifecycle.acceptsInput) None
      else if (ticks.msUntilDue() == 0) backlog.claimTick(inputRow.expectsRows).orElse(backlog.claim())
      else backlog.claim()
    next.foreach { batch =>
      try {
        sentRows.foreach(_.add(batch))
        sendBatch(batch)
      } finally backlog.sent()
    }
    next.isDefined
  }

  def sendEnd(): Unit = {
    lifecycle.endSent()
    sendMessage(protocol.end)
  }

  /** Frees the buffer; nothing may be sent afterwards. */
  def close(): Unit = buffer.close()

  private def sendBatch(batch: Batch): Unit = {
    var current: PendingRow = null
    val rows = batch.entries.iterator.map { entry =>
      current = entry
      entry.row
    }
    try sendMessage(protocol.write(rows, batch.entries.length, _))
    catch {
      // Writing a row evaluates the argument expressions of the functions, which can fail on its data.
      case failure: Throwable if current != null && BadRecordHandler.isDataError(failure) =>
        throw BadRecordHandler.named(inputRow.partitions.positionOf(current.origin), failure)
    }
  }

  private def sendMessage(write: DataOutputStream => Unit): Unit = {
    buffer.reset()
    write(new DataOutputStream(buffer))
    send(buffer.toByteBuffer)
  }

  private def send(bytes: ByteBuffer): Unit =
    try channel.write(bytes, goOn = if (lifecycle.isStopping) lifecycle.graceMsLeft > 0 else !context.isInterrupted())
    catch {
      case _: IOException =>
        // The reader finds out why: if the worker closed its socket, it may have left a traceback.
        lifecycle.sendingFailed()
        stopSending()
    }

  /** Lets the feeder discard the remaining input, and the reader look at the new state. */
  def stopSending(): Unit = {
    backlog.close()
    channel.wakeReader()
  }
}

private object BatchSender {
  private val BufferBytes = 64 * 1024
}
