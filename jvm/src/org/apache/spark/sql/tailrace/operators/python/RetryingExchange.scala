package org.apache.spark.sql.tailrace.operators.python

import scala.collection.mutable

import org.apache.spark.TaskContext
import org.apache.spark.api.python.PythonException
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.tailrace.errors.BadRecordHandler
import org.apache.spark.sql.tailrace.operators.input.{InputRow, OriginTrackedRows, ThreadFedInput}
import org.apache.spark.sql.tailrace.origin.{CurrentRow, Origin}

import tailrace.TailraceException

/**
 * For a query that continues without its bad records. The worker itself continues after a row on which a function
 * raises, and answers it by its traceback.
 *
 * A worker that dies is replaced: another exchange takes the rows without a result (the suspects) one at a time. A row
 * at which that worker dies as well goes to the handler, and a new exchange continues with the rest of the input. The
 * input is read by a thread that outlives the exchanges, because a failed exchange cannot interrupt a source that it
 * waits for.
 *
 * @param checkArguments evaluates the functions' arguments for a row, which can fail on its data
 */
private[python] final class RetryingExchange(
    input: Iterator[InternalRow],
    connect: () => WorkerConnection,
    checkArguments: InternalRow => Unit,
    limits: PythonLimits,
    context: TaskContext,
    handler: BadRecordHandler)
    extends Iterator[(InternalRow, InternalRow)] {
  import RetryingExchange._

  private val (inputRow, outputRow) = CurrentRow.acrossThreads()
  private val source = new ThreadFedInput(Seq(new OriginTrackedRows(input, inputRow)), "python-input", context)
  // Rows that an exchange has taken and not answered. Guarded by this object's lock.
  private val unanswered = mutable.Queue.empty[InputRow]
  private var suspects = Seq.empty[InputRow]
  // What the handler threw: the query ends, whatever the reason looks like.
  @volatile private var refusal: Throwable = _
  @volatile private var attempt = newAttempt()
  // Listeners run last in, first out: this one runs before the source is closed.
  context.addTaskCompletionListener[Unit](_ => attempt.exchange.close())

  override def hasNext: Boolean = {
    handler.rethrowUnsent()
    var more = false
    var isOver = false
    while (!more && !isOver) {
      try {
        more = attempt.results.hasNext
        if (!more) {
          attempt.end()
          isOver = suspects.isEmpty && !attempt.isOfSuspects
          if (!isOver) {
            suspects = Nil
            attempt = newAttempt()
          }
        }
      } catch {
        case failure: Throwable
            if isCausedByRow(failure) && !source.hasFailedWith(failure) && (failure ne refusal) =>
          attempt.end()
          recover(failure)
          attempt = newAttempt()
      }
    }
    if (isOver) {
      handler.flush()
    }
    more
  }

  override def next(): (InternalRow, InternalRow) = {
    val result = attempt.results.next()
    val row = attempt.exchange.nextRow()
    rowIsAnswered()
    (row, result)
  }

  private def rowIsAnswered(): Unit = synchronized {
    unanswered.dequeue()
    notifyAll()
  }

  private def skip(bad: PendingRow, failure: Throwable): Unit = {
    rowIsAnswered()
    handle(bad.origin, failure)
  }

  private def handle(origin: Origin, failure: Throwable): Unit =
    try handler.handle(inputRow.partitions.positionOf(origin), withoutRecordName(failure))
    catch {
      case refused: Throwable =>
        refusal = refused
        throw refused
    }

  private def recover(failure: Throwable): Unit = {
    val withoutResult = synchronized(unanswered.dequeueAll(_ => true)).toSeq
    if (attempt.isOfSuspects) {
      // Suspects go one at a time and in order, so the first one without a result is the bad record.
      val bad = withoutResult.headOption.getOrElse(throw failure)
      handle(bad.origin, failure)
      suspects = suspects.dropWhile(_ ne bad).drop(1)
    } else {
      // A worker that fails before it has a row fails for another reason.
      suspects = if (withoutResult.isEmpty) throw failure else withoutResult
    }
  }

  private def newAttempt(): Attempt =
    if (suspects.nonEmpty) new Attempt(Some(suspects), limits.copy(maxRowsPerBatch = 1)) else new Attempt(None, limits)

  /** One exchange, either over the suspects or over the rest of the input. */
  private final class Attempt(only: Option[Seq[InputRow]], attemptLimits: PythonLimits) {
    private val offeredRow = new CurrentRow
    offeredRow.belongsTo(inputRow.partitions, inputRow.stage, inputRow.timed)
    private val rows = new OfferedRows(only.fold(checkedInput)(_.iterator), offeredRow, oneAtATime = only.isDefined)

    val isOfSuspects: Boolean = only.isDefined
    val exchange = new WorkerExchange(
      rows,
      connect,
      keepsRows = true,
      repeatable = false,
      attemptLimits,
      context,
      Some((offeredRow, outputRow)),
      onBadRow = skip,
      closesWithTask = false)
    val results: Iterator[InternalRow] = exchange.flatMap(_.rows)

    def end(): Unit = {
      rows.close()
      // Afterwards no other thread uses the rows.
      exchange.close()
      if (!isOfSuspects) {
        RetryingExchange.this.synchronized(unanswered ++= rows.notTaken)
      }
    }
  }

  /** The rows that are left, with a null whenever none arrives for a while or one is bad. */
  private def checkedInput: Iterator[InputRow] = new Iterator[InputRow] {
    override def hasNext: Boolean = !source.hasEnded
    // The exchange stops its feeder, which calls this, when the task is killed, and may then keep the worker.
    override def next(): InputRow = Option(source.poll(PollMs)).filter(hasArguments).orNull
  }

  private def hasArguments(row: InputRow): Boolean =
    try {
      checkArguments(row.row)
      true
    } catch {
      case failure: Throwable if BadRecordHandler.isDataError(failure) =>
        handle(row.origin, failure)
        false
    }

  /** The rows that an exchange takes, each of which then counts as unanswered. */
  private final class OfferedRows(rows: Iterator[InputRow], offeredRow: CurrentRow, oneAtATime: Boolean)
      extends Iterator[InternalRow] {
    @volatile private var isClosed = false
    private var following: InputRow = _

    override def hasNext: Boolean = {
      if (oneAtATime) {
        awaitResults()
      }
      while (following == null && !isClosed && rows.hasNext) {
        following = rows.next()
      }
      following != null && !isClosed
    }

    override def next(): InternalRow = RetryingExchange.this.synchronized {
      val taken = following
      following = null
      unanswered.enqueue(taken)
      offeredRow.restore(taken.origin)
      taken.row
    }

    private def awaitResults(): Unit = RetryingExchange.this.synchronized {
      while (unanswered.nonEmpty && !isClosed) {
        RetryingExchange.this.wait(PollMs)
      }
    }

    def close(): Unit = isClosed = true

    /** The row that was read for the exchange and not taken before the close. */
    def notTaken: Option[InputRow] = {
      val left = Option(following)
      following = null
      left
    }
  }
}

private[python] object RetryingExchange {
  private val PollMs = 50L

  private def isCausedByRow(failure: Throwable): Boolean = failure match {
    case _: PythonException => true
    case named: TailraceException => CausedByRow(named.getCondition)
    case other => BadRecordHandler.isDataError(other)
  }

  private val CausedByRow = Set("TAILRACE_PYTHON_WORKER_LOST", BadRecordHandler.Named)

  /** The handler names the record itself, so a failure that already does is replaced by its cause. */
  private def withoutRecordName(failure: Throwable): Throwable = failure match {
    case named: TailraceException if named.getCondition == BadRecordHandler.Named && named.getCause != null =>
      named.getCause
    case other => other
  }
}
