package org.apache.spark.sql.tailrace.operators.python

import java.io.{BufferedInputStream, DataInputStream, DataOutputStream, FilterInputStream, InputStream, IOException}
import java.nio.ByteBuffer
import java.util.concurrent.ConcurrentLinkedQueue
import java.util.concurrent.TimeUnit.NANOSECONDS

import scala.util.Try
import scala.util.control.NonFatal

import org.apache.spark.TaskContext
import org.apache.spark.api.python.PythonException
import org.apache.spark.internal.Logging
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.util.{DirectByteBufferOutputStream, UninterruptibleThread, Utils}
import org.apache.spark.sql.tailrace.errors.BadRecordHandler
import org.apache.spark.sql.tailrace.metrics.{Figure, TaskIdentity}
import org.apache.spark.sql.tailrace.origin.{CurrentRow, SourcePosition}

/**
 * One task's exchange with one Python worker, and an iterator over the worker's answers.
 *
 * Two threads take part. The feeder pulls rows from the source and sends them; where it finds the worker busy they
 * wait in the [[Backlog]]. The thread that pulls the answers (the task's own, or the feeder of a Python operator
 * further down) reads them, and sends what is waiting when the worker has nothing left to do.
 *
 * @param input      the operator's input; only the feeder touches it
 * @param connect    who knows the functions, and the wire to them
 * @param keepsRows  whether results are to be joined with the rows they came from, by [[nextRow]]
 * @param repeatable whether the functions may be called once more, to find out at which row of a batch they failed
 * @param origins    what the input writes and what the output is to write, if not the task's own
 * @param endsInOrder whether the worker of a task that is stopped may end what it does, so that the next task finds it
 *                    warm; otherwise it is killed
 * @param ticks      when the worker gets an empty batch, in which it looks after its timers
 */
private[python] final class WorkerExchange(
    input: Iterator[InternalRow],
    connect: () => (Employer, WorkerProtocol),
    keepsRows: Boolean,
    repeatable: Boolean,
    limits: PythonLimits,
    context: TaskContext,
    origins: Option[(CurrentRow, CurrentRow)] = None,
    endsInOrder: Boolean = true,
    ticks: Ticks = Ticks.Never)
    extends Iterator[Answer]
    with Logging {
  import WorkerExchange._

  private val (employer, wire) = connect()
  private val (inputRow, outputRow) = origins.getOrElse(CurrentRow.acrossThreads())
  private val hired =
    try employer.hire(context)
    catch {
      case failure: Throwable =>
        wire.free()
        throw failure
    }
  private val channel = new WorkerChannel(hired.worker.channel, () => beforeWaiting())
  private val counted = new CountedInput(new BufferedInputStream(channel, BufferBytes))
  private val in = new DataInputStream(counted)
  private val outbound = new DirectByteBufferOutputStream(BufferBytes)
  private val busy = if (inputRow.timed) TaskIdentity.ofThisTask().ofStage(Figure.Python, inputRow.stage) else null
  private val backlog = new Backlog(limits.maxRowsPerBatch, keepsRows, onDone)
  private val kept = new ConcurrentLinkedQueue[Batch]

  // The worker knows what to do, and can be given something.
  @volatile private var isInstructed = false
  @volatile private var stopping = false
  // The worker takes no more rows: it has failed, or its function has returned before its input ended.
  @volatile private var deaf = false
  // A message was cut off in the middle, so that the worker cannot be brought to an orderly end.
  @volatile private var torn = false
  @volatile private var endSent = false
  @volatile private var feederFailure: Throwable = _
  private var isClosed = false
  private var workerIsOurs = true
  private var answer: Answer = _
  private var ended = false
  private var readingSinceNanos = System.nanoTime()
  @volatile private var partingSince: Option[Long] = None
  private var keptBatch: Batch = _
  private var keptIndex = 0

  // Kafka's consumer can hang when its thread is interrupted at the wrong moment; this kind of thread spares it.
  private val feeder = new UninterruptibleThread(s"tailrace-python-feeder-${context.taskAttemptId()}") {
    override def run(): Unit = {
      TaskContext.setTaskContext(context)
      try feed()
      catch {
        case _: InterruptedException if stopping =>
        case failure: Throwable if !stopping => fail(failure)
        case NonFatal(_) =>
      } finally {
        TaskContext.unset()
      }
    }
  }
  feeder.setDaemon(true)
  // Listeners run last in, first out: this one before the source is closed, which the feeder still reads.
  context.addTaskCompletionListener[Unit](_ => close())
  if (!endsInOrder) {
    // What the worker uses may be closed as soon as the task has failed.
    context.addTaskFailureListener((_: TaskContext, _: Throwable) => close())
  }
  ticks.whenEarlier(() => if (!stopping && !deaf) channel.wakeReader())
  feeder.start()

  override def hasNext: Boolean = {
    while (answer == null && !ended) {
      val heard = read()
      if (heard == null) {
        conclude()
      } else {
        if (wire.answersEachBatch) {
          backlog.answered(heard.count)
        } else if (heard.count == 0) {
          backlog.taken()
        }
        if (heard.count > 0) {
          answer = heard
        }
      }
    }
    answer != null
  }

  override def next(): Answer = {
    if (!hasNext) {
      throw new NoSuchElementException("the worker has ended")
    }
    val heard = answer
    answer = null
    if (!keepsRows) {
      // Which of the batch's rows it came from, only the function knows.
      backlog.atWork.flatMap(_.entries.lastOption).foreach(entry => outputRow.restore(entry.origin))
    }
    heard
  }

  /** The next result was made of this row of the batch at work; of none, if it was not made of a row. */
  def isResultOf(row: Int): Unit = backlog.atWork match {
    case Some(batch) if row >= 0 => outputRow.restore(batch.entries(row).origin)
    case _ => outputRow.forget()
  }

  /** The row that the next result belongs to. */
  def nextRow(): InternalRow = {
    if (keptBatch == null || keptIndex == keptBatch.entries.length) {
      keptBatch = kept.poll()
      keptIndex = 0
      if (keptBatch == null) {
        throw new IllegalStateException("the Python function gave more results than it got rows")
      }
    }
    val entry = keptBatch.entries(keptIndex)
    keptIndex += 1
    if (keptIndex == keptBatch.entries.length) {
      backlog.settled(keptBatch)
    }
    outputRow.restore(entry.origin)
    entry.row
  }

  // In the feeder's thread.

  private def feed(): Unit = {
    send(employer.instructions(hired.worker, context.partitionId(), context))
    sendMessage(wire.start)
    isInstructed = true
    channel.wakeReader()
    // From here on the worker's answers are worth waiting for; whatever failed before is told by `fail`.
    while (!stopping && input.hasNext) {
      val row = input.next()
      if (!deaf) {
        backlog.add(new Waiting(row.copy(), inputRow.keep()))
        while (sendOne()) {}
        while (backlog.awaitRoom()) {
          sendOne()
        }
      }
    }
    while (backlog.awaitAllSent()) {
      sendOne()
    }
    if (!deaf && !stopping) {
      sendEnd()
    }
  }

  private def fail(failure: Throwable): Unit = {
    feederFailure = failure
    channel.wakeReader()
  }

  // In either thread; the backlog lets one at a time send.

  /** A batch, if it is time for one. */
  private def sendOne(): Boolean = {
    val batch =
      if (deaf || !isInstructed) None
      else if (ticks.msUntilDue() == 0) backlog.claimTick().orElse(backlog.claim())
      else backlog.claim()
    batch.foreach { claimed =>
      try {
        if (keepsRows) {
          kept.add(claimed)
        }
        writeBatch(claimed)
      } finally backlog.sent()
    }
    batch.isDefined
  }

  private def writeBatch(batch: Batch): Unit = {
    var written: Waiting = null
    val rows = batch.entries.iterator.map { entry =>
      written = entry
      entry.row
    }
    try sendMessage(wire.write(rows, batch.entries.length, _))
    catch {
      // The arguments of the functions are expressions too.
      case failure: Throwable if written != null && BadRecordHandler.isDataError(failure) =>
        throw BadRecordHandler.named(inputRow.places.positionOf(written.origin), failure)
    }
  }

  private def sendEnd(): Unit = {
    endSent = true
    sendMessage(wire.end)
  }

  private def sendMessage(write: DataOutputStream => Unit): Unit = {
    outbound.reset()
    write(new DataOutputStream(outbound))
    send(outbound.toByteBuffer)
  }

  private def send(bytes: ByteBuffer): Unit = {
    try channel.write(bytes, goOn = if (stopping) partingMsLeft > 0 else !context.isInterrupted())
    catch {
      case _: IOException =>
        // Why the worker hung up, if it did, is for the reader to find out: it may have left a traceback.
        torn = true
        hangUp()
    }
  }

  private def onDone(busyNanos: Long): Unit = if (busy != null) {
    busy.record(NANOSECONDS.toMicros(busyNanos), 1)
  }

  private def hangUp(): Unit = {
    deaf = true
    backlog.close()
    channel.wakeReader()
  }

  // In the thread that pulls the answers.

  private def read(): Answer = {
    val before = counted.bytes
    readingSinceNanos = System.nanoTime()
    try wire.read(in)
    catch {
      case failure: PythonFailure =>
        dismiss()
        val batch = backlog.atWork
        throw failure.row match {
          case Some(row) => PythonErrors.raised(failure.traceback, batch.map(positions(_).slice(row, row + 1)))
          case None => batch.flatMap(failureOfOneRow).getOrElse(PythonErrors.raised(failure.traceback, atWork))
        }
      case _: IOException if feederFailure != null =>
        dismiss()
        throw feederFailure
      case failure: IOException if !context.isInterrupted() =>
        dismiss()
        throw PythonErrors.lost(failure, hired.lastWords, atWork)
      case failure: Throwable =>
        // The task is being killed. In the middle of an answer one cannot read on.
        torn ||= counted.bytes > before
        throw failure
    }
  }

  private def beforeWaiting(): Long = {
    if (feederFailure != null) {
      throw feederFailure
    }
    if (!stopping) {
      context.killTaskIfInterrupted()
      if (Thread.interrupted()) {
        throw new InterruptedException
      }
      if (backlog.workerIsIdle) {
        // The feeder may be waiting for the source, and rows here for the feeder. Not more than one batch: the worker
        // reads it to its end, but with a second one both sides could wait for the other to read.
        sendOne()
      }
    }
    // Only the time counts in which somebody waited for the worker.
    val silentNanos = System.nanoTime() - math.max(readingSinceNanos, channel.lastReadNanos)
    val leftMs = limits.timeoutMs - NANOSECONDS.toMillis(math.min(backlog.atWorkNanos, silentNanos))
    if (leftMs < 0) {
      val held = backlog.holdsTooMany
      dismiss()
      throw if (held) PythonErrors.heldBack(limits.timeoutMs) else PythonErrors.timedOut(limits.timeoutMs, atWork)
    }
    if (partingMsLeft <= 0) {
      throw new IOException("the worker did not end in time")
    }
    val tickMs =
      if (stopping || !isInstructed || !backlog.workerIsIdle) LongestWaitMs else math.max(1, ticks.msUntilDue())
    Seq(leftMs + 1, partingMsLeft, LongestWaitMs, tickMs).min
  }

  private def partingMsLeft: Long =
    partingSince.fold(LongestWaitMs)(since => PartingMs - NANOSECONDS.toMillis(System.nanoTime() - since))

  private def atWork: PythonErrors.AtWork = backlog.atWork.map(positions)

  private def positions(batch: Batch): Seq[SourcePosition] =
    batch.entries.toSeq.map(entry => inputRow.places.positionOf(entry.origin))

  /** The failure as it is when the rows of the batch are given to the functions one at a time. */
  private def failureOfOneRow(batch: Batch): Option[Throwable] = {
    if (!repeatable || batch.entries.length == 1 || positions(batch).contains(null)) {
      None
    } else {
      val current = CurrentRow.ofThisTask()
      val rows = batch.entries.iterator.map { entry =>
        current.restore(entry.origin)
        entry.row
      }
      val oneByOne = PythonLimits(math.min(limits.timeoutMs, SearchMs), maxRowsPerBatch = 1)
      val again = new WorkerExchange(rows, connect, keepsRows = true, repeatable = false, oneByOne, context)
      val begun = System.nanoTime()
      Try {
        while (again.hasNext && NANOSECONDS.toMillis(System.nanoTime() - begun) < SearchMs) {
          again.next()
        }
      }.failed.toOption.filter(_.isInstanceOf[PythonException])
    }
  }

  /** The worker ended in order. */
  private def conclude(): Unit = {
    ended = true
    // A function over an iterator may return before its input ends; as in micro-batch, the rest is not asked for.
    hangUp()
    while (feeder.isAlive) {
      context.killTaskIfInterrupted()
      feeder.join(LongestWaitMs)
    }
    if (feederFailure != null) {
      throw feederFailure
    }
    if (backlog.owesResults) {
      throw new IllegalStateException("the Python worker ended before it had answered every row")
    }
    handBack()
  }

  private def handBack(): Unit = {
    workerIsOurs = false
    channel.close()
    if (wire.workerIsReusable && !torn) hired.release() else hired.kill()
  }

  private def dismiss(): Unit = {
    if (workerIsOurs) {
      workerIsOurs = false
      hangUp()
      channel.close()
      hired.kill()
    }
  }

  /** Safe to call twice. */
  def close(): Unit = if (!isClosed) {
    isClosed = true
    partingSince = Some(System.nanoTime())
    stopping = true
    backlog.close()
    // A task that is being killed is in an interrupted thread, where one cannot wait.
    var interrupted = Thread.interrupted()
    try {
      feeder.interrupt()
      // Whatever happens meanwhile: the source must not be closed while the feeder reads it.
      while (feeder.isAlive) {
        try feeder.join()
        catch {
          case _: InterruptedException => interrupted = true
        }
      }
      if (workerIsOurs) {
        partInOrder()
      }
    } finally {
      dismiss()
      // An answer that was cut off in the middle leaves buffers behind, of which Arrow complains.
      Utils.tryLogNonFatalError(wire.free())
      outbound.close()
      if (interrupted) {
        Thread.currentThread().interrupt()
      }
    }
  }

  /** Lets the worker finish what it has, so that the next epoch finds it warm; not for long. */
  private def partInOrder(): Unit = {
    if (endsInOrder && !torn && feederFailure == null) {
      partingSince = Some(System.nanoTime())
      try {
        if (!endSent) {
          sendEnd()
        }
        if (!ended) {
          while (wire.read(in) != null) {}
        }
        handBack()
      } catch {
        case NonFatal(failure) => logDebug("A Python worker is killed because it did not end in time", failure)
      }
    }
  }
}

private[python] object WorkerExchange {
  private val BufferBytes = 64 * 1024
  private val LongestWaitMs = 1000L
  private val PartingMs = 1000L
  private val SearchMs = 5000L
}

/** Knows how much was read. */
private final class CountedInput(stream: InputStream) extends FilterInputStream(stream) {
  var bytes = 0L

  override def read(): Int = {
    val one = super.read()
    if (one >= 0) {
      bytes += 1
    }
    one
  }

  override def read(target: Array[Byte], offset: Int, length: Int): Int = {
    val count = super.read(target, offset, length)
    bytes += math.max(0, count)
    count
  }
}
