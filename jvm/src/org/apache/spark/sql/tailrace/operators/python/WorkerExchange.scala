package org.apache.spark.sql.tailrace.operators.python

import java.io.{BufferedInputStream, DataInputStream, IOException}
import java.util.concurrent.TimeUnit.NANOSECONDS

import scala.util.control.NonFatal

import org.apache.spark.TaskContext
import org.apache.spark.internal.Logging
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.util.Utils
import org.apache.spark.sql.tailrace.metrics.{Figure, TaskIdentity}
import org.apache.spark.sql.tailrace.operators.input.UninterruptibleJoin
import org.apache.spark.sql.tailrace.origin.CurrentRow

/**
 * One task's exchange with one Python worker, and an iterator over the worker's answers.
 *
 * Two threads take part. The [[ExchangeFeeder]] reads the source and sends rows; rows that find the worker busy wait in
 * the [[Backlog]]. The reader, which is the thread that pulls the answers (the task's own, or the feeder of a Python
 * operator downstream), sends waiting rows whenever the worker becomes idle.
 *
 * [[ExchangeState]] draws the states and transitions. When the task ends, [[close]] stops the feeder, gives the
 * worker a short time to end in order and kills it otherwise.
 *
 * @param input      the operator's input; only the feeder touches it
 * @param connect    makes a new command and protocol
 * @param keepsRows  true if results are joined with the rows they came from, by [[nextRow]]
 * @param repeatable true if the functions may be called again to find out at which row of a batch they failed
 * @param origins    what the input writes and what the output should write, if not the task's own
 * @param stopsInOrder true if the worker of a stopped task may finish what it has, so the next task finds it warm;
 *                     otherwise it is killed
 * @param ticks      when the worker gets an empty batch, on which it fires its timers; rows wait until this is known
 * @param awaitsState true while the worker cannot go on because the epoch before still has its state
 * @param onBadRow   called for a row that the worker answers by its traceback, in the order of the results; without it
 *                   no worker may do so
 * @param closesWithTask true if the exchange is closed when the task ends; otherwise the caller closes it. Spark keeps
 *                       a listener until then, and with it the exchange and its buffers.
 */
private[python] final class WorkerExchange(
    input: Iterator[InternalRow],
    connect: () => WorkerConnection,
    keepsRows: Boolean,
    repeatable: Boolean,
    limits: PythonLimits,
    context: TaskContext,
    origins: Option[(CurrentRow, CurrentRow)] = None,
    stopsInOrder: Boolean = true,
    ticks: TimerTicks = TimerTicks.Never,
    awaitsState: () => Boolean = () => false,
    onBadRow: (PendingRow, Throwable) => Unit = WorkerExchange.NoBadRows,
    closesWithTask: Boolean = true)
    extends Iterator[Answer]
    with Logging {
  import ExchangeState._
  import WorkerExchange._

  private val WorkerConnection(command, protocol) = connect()
  private val (inputRow, outputRow) = origins.getOrElse(CurrentRow.acrossThreads())
  private val lease =
    try command.lease(context)
    catch {
      case failure: Throwable =>
        protocol.free()
        throw failure
    }
  private val lifecycle = new ExchangeLifecycle(GraceMs)
  private val channel = new WorkerChannel(lease.worker.channel, () => beforeWaiting())
  private val counted = new CountingInput(new BufferedInputStream(channel, BufferBytes))
  private val in = new DataInputStream(counted)
  private val busyTime = if (inputRow.timed) TaskIdentity.ofThisTask().ofStage(Figure.Python, inputRow.stage) else null
  private val backlog = new Backlog(limits.maxRowsPerBatch, keepsRows, onBatchDone, startsHeld = !ticks.hasBegun)
  private val errors = new ExchangeErrors(backlog, inputRow, connect, repeatable, limits, context)
  private val sentRows = Option.when(keepsRows)(new SentRows(backlog.settled))
  private val sender =
    new BatchSender(protocol, channel, backlog, lifecycle, ticks, sentRows, inputRow, context)
  private val feeder =
    new ExchangeFeeder(input, inputRow, command, lease, sender, backlog, lifecycle, channel, context)

  private var answer: Answer = _
  private var readingSinceNanos = System.nanoTime()

  if (closesWithTask) {
    // Listeners run last in, first out: this one runs before the source is closed, which the feeder still reads.
    context.addTaskCompletionListener[Unit](_ => close())
  }
  if (!stopsInOrder) {
    // What the worker uses may be closed as soon as the task has failed.
    context.addTaskFailureListener((_: TaskContext, _: Throwable) => close())
  }
  private def wakeReader(): Unit = if (lifecycle.acceptsInput && !lifecycle.isStopping) channel.wakeReader()
  ticks.whenEarlier(() => wakeReader())
  ticks.whenBegun { () =>
    backlog.release()
    wakeReader()
  }
  feeder.start()

  override def hasNext: Boolean = {
    while (answer == null && !lifecycle.isFinished) {
      val received = read()
      if (received == null) {
        finish()
      } else {
        if (protocol.answersEachBatch) {
          backlog.answered(received.count)
        } else if (received.count == 0) {
          backlog.taken()
        }
        if (received.failure.isDefined) {
          received.failure.foreach(skipNextRow)
        } else if (received.count > 0) {
          answer = received
        }
      }
    }
    answer != null
  }

  override def next(): Answer = {
    if (!hasNext) {
      throw new NoSuchElementException("the worker has ended")
    }
    val received = answer
    answer = null
    if (!keepsRows) {
      // Only the function knows which row of the batch a result came from.
      backlog.atWork.flatMap(_.entries.lastOption).foreach(entry => outputRow.restore(entry.origin))
    }
    received
  }

  /** Sets the origin of the next result to that of a row of the current batch; to none if `row` is negative. */
  def isResultOf(row: Int): Unit = backlog.atWork match {
    case Some(batch) if row >= 0 => outputRow.restore(batch.entries(row).origin)
    case batch =>
      outputRow.forget()
      // Not what the input expects now: it may have got further than the worker.
      outputRow.expectsRows = batch.fold(inputRow.expectsRows)(_.expectsRows)
  }

  /** The row that the next result belongs to. */
  def nextRow(): InternalRow = {
    val entry = nextEntry()
    outputRow.restore(entry.origin)
    entry.row
  }

  private def skipNextRow(traceback: String): Unit = {
    val bad = nextEntry()
    onBadRow(bad, PythonErrors.raised(traceback, Some(Seq(inputRow.partitions.positionOf(bad.origin)))))
  }

  private def nextEntry(): PendingRow =
    sentRows.getOrElse(throw new IllegalStateException("this exchange does not keep rows")).next()

  private def onBatchDone(busyNanos: Long): Unit = if (busyTime != null) {
    busyTime.record(NANOSECONDS.toMicros(busyNanos), 1)
  }

  private def read(): Answer = {
    val before = counted.bytesRead
    readingSinceNanos = System.nanoTime()
    try protocol.read(in)
    catch {
      case failure: PythonFailure =>
        killWorker()
        throw errors.raised(failure)
      case failure: IOException =>
        lifecycle.feederFailure.foreach { reason =>
          killWorker()
          throw reason
        }
        if (!context.isInterrupted()) {
          killWorker()
          throw errors.lost(failure, lease.crashReport)
        }
        giveUpReading(before)
        throw failure
      case failure: Throwable =>
        giveUpReading(before)
        throw failure
    }
  }

  /** After an answer that was read in part, the next one cannot be found. */
  private def giveUpReading(bytesBefore: Long): Unit = if (counted.bytesRead > bytesBefore) {
    lifecycle.readingFailed()
    sender.stopSending()
  }

  /** Called by the reader when the worker has sent nothing; returns how many milliseconds to wait at most. */
  private def beforeWaiting(): Long = {
    lifecycle.feederFailure.foreach(reason => throw reason)
    if (!lifecycle.isStopping) {
      context.killTaskIfInterrupted()
      if (Thread.interrupted()) {
        throw new InterruptedException
      }
      if (backlog.workerIsIdle) {
        // The feeder may be waiting for the source while rows wait here. One batch at most: the worker reads it to its
        // end, but with a second one each side could wait for the other to read.
        sender.sendNext()
      }
    }
    val timeoutMs = msUntilTimeout()
    if (timeoutMs < 0) {
      val timeout = errors.timedOut()
      killWorker()
      throw timeout
    }
    val graceMs = lifecycle.graceMsLeft
    if (graceMs <= 0) {
      throw new IOException("the worker did not end in time")
    }
    Seq(timeoutMs + 1, graceMs, LongestWaitMs, msUntilTick()).min
  }

  /** Counts only the time in which the worker was busy and the reader waited for it. */
  private def msUntilTimeout(): Long = {
    if (awaitsState()) {
      readingSinceNanos = System.nanoTime()
    }
    val silentNanos = System.nanoTime() - math.max(readingSinceNanos, channel.lastReadNanos)
    limits.timeoutMs - NANOSECONDS.toMillis(math.min(backlog.atWorkNanos, silentNanos))
  }

  private def msUntilTick(): Long =
    if (!lifecycle.isStopping && lifecycle.acceptsInput && backlog.workerIsIdle) math.max(1, ticks.msUntilDue())
    else LongestWaitMs

  /** The worker has ended in order. */
  private def finish(): Unit = {
    lifecycle.workerEnded()
    sender.stopSending()
    while (feeder.isAlive) {
      context.killTaskIfInterrupted()
      feeder.join(LongestWaitMs)
    }
    lifecycle.feederFailure.foreach(reason => throw reason)
    if (backlog.owesResults) {
      throw new IllegalStateException("the Python worker ended before it had answered every row")
    }
    returnWorker()
  }

  private def returnWorker(): Unit = {
    channel.close()
    if (protocol.workerIsReusable && lifecycle.state == Finished(inSync = true)) lease.release() else lease.kill()
  }

  private def killWorker(): Unit = if (lease.isHeld) {
    lifecycle.workerKilled()
    sender.stopSending()
    channel.close()
    lease.kill()
  }

  /** Stops the exchange: the feeder first, then the worker. Safe to call twice. */
  def close(): Unit = if (lifecycle.requestStop()) {
    backlog.close()
    // A task that is killed runs this in an interrupted thread, in which waiting is impossible.
    var interrupted = Thread.interrupted()
    try {
      // Whatever happens meanwhile: the source must not be closed while the feeder reads it.
      feeder.interrupt()
      UninterruptibleJoin(feeder)
      interrupted |= Thread.interrupted()
      if (stopsInOrder && lease.isHeld) {
        stopWorkerInOrder()
      }
    } finally {
      killWorker()
      // An answer that was cut off leaves buffers behind, and Arrow complains about those.
      Utils.tryLogNonFatalError(protocol.free())
      sender.close()
      if (interrupted) {
        Thread.currentThread().interrupt()
      }
    }
  }

  /** Lets the worker finish what it has, for a short time, so the next epoch finds it warm. */
  private def stopWorkerInOrder(): Unit = {
    lifecycle.restartGracePeriod()
    try {
      if (lifecycle.acceptsInput) {
        sender.sendEnd()
      }
      lifecycle.state match {
        case Exchanging | InputEnded =>
          readToEnd()
          returnWorker()
        case Finished(_) => returnWorker()
        // The worker does not know what to run, or would not understand us. The caller kills it.
        case Starting | Broken | FeederFailed(_) | Killed =>
      }
    } catch {
      case NonFatal(failure) => logDebug("A Python worker is killed because it did not end in time", failure)
    }
  }

  private def readToEnd(): Unit = {
    while (protocol.read(in) != null) {}
    lifecycle.workerEnded()
  }
}

private[python] object WorkerExchange {
  private val BufferBytes = 64 * 1024
  private val LongestWaitMs = 1000L
  private val GraceMs = 1000L

  private val NoBadRows: (PendingRow, Throwable) => Unit =
    (_, failure) => throw new IllegalStateException("a Python worker continued after a bad row", failure)
}
