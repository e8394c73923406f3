package org.apache.spark.sql.tailrace.operators.python

import java.util.concurrent.LinkedBlockingQueue
import java.util.concurrent.TimeUnit.MILLISECONDS

import scala.collection.mutable

import org.apache.spark.TaskContext
import org.apache.spark.api.python.PythonException
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.util.UninterruptibleThread
import org.apache.spark.sql.tailrace.errors.BadRecordHandler
import org.apache.spark.sql.tailrace.origin.CurrentRow

import tailrace.TailraceException

/**
 * Conversations with one worker after the other, for a query that goes on without the rows that its functions fail on. When
 * one fails, the rows that it owes an answer for are given to the functions one at a time; those that fail again are
 * left to the handler, and a new conversation goes on with the rest of the input.
 *
 * The input is read by a thread of its own, because a conversation that has failed cannot be torn from a source that it waits for.
 */
private[python] final class RetryingExchange(
    input: Iterator[InternalRow],
    connect: () => (Employer, WorkerProtocol),
    limits: PythonLimits,
    context: TaskContext,
    handler: BadRecordHandler)
    extends Iterator[(InternalRow, InternalRow)] {
  import RetryingExchange._

  private val (inputRow, outputRow) = CurrentRow.acrossThreads()
  private val feed = new Feed(input, inputRow, context)
  private val owed = mutable.Queue.empty[Waiting]
  private var suspects = Seq.empty[Waiting]
  private var turn = newTurn()

  override def hasNext: Boolean = {
    var more = false
    var isOver = false
    while (!more && !isOver) {
      try {
        more = turn.results.hasNext
        if (!more) {
          turn.end()
          isOver = suspects.isEmpty && !turn.isOfSuspects
          if (!isOver) {
            suspects = Nil
            turn = newTurn()
          }
        }
      } catch {
        case failure: Throwable if isTheRowsFault(failure) && !feed.hasFailedWith(failure) =>
          turn.end()
          recover(failure)
          turn = newTurn()
      }
    }
    more
  }

  override def next(): (InternalRow, InternalRow) = {
    val result = turn.results.next()
    val row = turn.conversation.nextRow()
    synchronized {
      owed.dequeue()
      notifyAll()
    }
    (row, result)
  }

  private def recover(failure: Throwable): Unit = {
    val unanswered = synchronized(owed.dequeueAll(_ => true)).toSeq
    if (turn.isOfSuspects) {
      // One at a time and in order: the first that has no answer is the one.
      val guilty = unanswered.headOption.getOrElse(throw failure)
      handler.handle(inputRow.places.positionOf(guilty.origin), withoutName(failure))
      suspects = suspects.dropWhile(_ ne guilty).drop(1)
    } else {
      // A worker that fails before it has a row fails for another reason.
      suspects = if (unanswered.isEmpty) throw failure else unanswered
    }
  }

  private def newTurn(): Turn =
    if (suspects.nonEmpty) new Turn(Some(suspects), limits.copy(maxRowsPerBatch = 1)) else new Turn(None, limits)

  /** One conversation, about the suspects or about what is to come. */
  private final class Turn(about: Option[Seq[Waiting]], turnLimits: PythonLimits) {
    private val givenRow = new CurrentRow
    givenRow.belongsTo(inputRow.places, inputRow.stage, inputRow.timed)
    private val rows = new Given(about.fold(feed.rows)(_.iterator), givenRow, oneAtATime = about.isDefined)

    val isOfSuspects: Boolean = about.isDefined
    val conversation = new WorkerExchange(
      rows,
      connect,
      keepsRows = true,
      repeatable = false,
      turnLimits,
      context,
      Some((givenRow, outputRow)))
    val results: Iterator[InternalRow] = conversation.flatMap(_.rows)

    def end(): Unit = {
      rows.close()
      // Its thread has ended then.
      conversation.close()
      if (!isOfSuspects) {
        RetryingExchange.this.synchronized(owed ++= rows.notTaken)
      }
    }
  }

  /** Rows given to a conversation; it owes an answer for each. */
  private final class Given(rows: Iterator[Waiting], givenRow: CurrentRow, oneAtATime: Boolean)
      extends Iterator[InternalRow] {
    @volatile private var isClosed = false
    private var following: Waiting = _

    override def hasNext: Boolean = {
      if (oneAtATime) {
        awaitAnswers()
      }
      while (following == null && !isClosed && rows.hasNext) {
        // Null while there is none yet.
        following = rows.next()
      }
      following != null && !isClosed
    }

    override def next(): InternalRow = RetryingExchange.this.synchronized {
      val taken = following
      following = null
      owed.enqueue(taken)
      givenRow.restore(taken.origin)
      taken.row
    }

    private def awaitAnswers(): Unit = RetryingExchange.this.synchronized {
      while (owed.nonEmpty && !isClosed) {
        RetryingExchange.this.wait(LooksEveryMs)
      }
    }

    def close(): Unit = isClosed = true

    /** A row that it has asked for and not taken before it was closed. */
    def notTaken: Option[Waiting] = {
      val left = Option(following)
      following = null
      left
    }
  }
}

private[python] object RetryingExchange {

  private def isTheRowsFault(failure: Throwable): Boolean = failure match {
    case _: PythonException => true
    case named: TailraceException => RowsFaults(named.getCondition)
    case other => BadRecordHandler.isDataError(other)
  }

  private val RowsFaults = Set("TAILRACE_PYTHON_WORKER_LOST", BadRecordHandler.Named)

  /** A failure that has its record's name already is told without it: the record is known. */
  private def withoutName(failure: Throwable): Throwable = failure match {
    case named: TailraceException if named.getCondition == BadRecordHandler.Named && named.getCause != null =>
      named.getCause
    case other => other
  }

  /** Reads ahead, a little. */
  private final class Feed(input: Iterator[InternalRow], inputRow: CurrentRow, context: TaskContext) {
    private val queue = new LinkedBlockingQueue[AnyRef](Ahead)
    @volatile private var stopping = false
    @volatile private var failure: Throwable = _

    /** What went wrong further up is not the fault of the rows that are here. */
    def hasFailedWith(reason: Throwable): Boolean = failure != null && (reason eq failure)

    private val thread = new UninterruptibleThread(s"tailrace-python-feed-${context.taskAttemptId()}") {
      override def run(): Unit = {
        TaskContext.setTaskContext(context)
        try {
          while (!stopping && input.hasNext) {
            put(new Waiting(input.next().copy(), inputRow.keep()))
          }
          put(End)
        } catch {
          case reason: Throwable if !stopping =>
            failure = reason
            put(End)
          case _: Throwable =>
        } finally {
          TaskContext.unset()
        }
      }
    }
    thread.setDaemon(true)
    // Listeners run last in, first out: after the conversations', and before the source is closed.
    context.addTaskCompletionListener[Unit] { _ =>
      stopping = true
      thread.interrupt()
      while (thread.isAlive) {
        thread.join(LooksEveryMs)
      }
    }
    thread.start()

    private def put(one: AnyRef): Unit = while (!stopping && !queue.offer(one, LooksEveryMs, MILLISECONDS)) {}

    /** What is left, with nulls where nothing comes for a while. */
    val rows: Iterator[Waiting] = new Iterator[Waiting] {
      private var isOver = false

      override def hasNext: Boolean = !isOver

      override def next(): Waiting = queue.poll(LooksEveryMs, MILLISECONDS) match {
        case row: Waiting => row
        case null => null
        case _ if failure != null =>
          // For whoever asks next.
          queue.offer(End)
          throw failure
        case _ =>
          isOver = true
          null
      }
    }
  }

  private object End
  private val Ahead = 1024
  private val LooksEveryMs = 50L
}
