package org.apache.spark.sql.tailrace.errors

import scala.collection.mutable

import org.apache.spark.{SparkThrowable, TaskContext}
import org.apache.spark.internal.Logging
import org.apache.spark.sql.tailrace.metrics.{ExecutorFigures, TaskIdentity}
import org.apache.spark.sql.tailrace.origin.SourcePosition

import tailrace.TailraceException

/**
 * In a task: applies the query's policy to records that cannot be processed.
 *
 * @param sendsLater true if dead letters are sent by another thread; the task must then [[flush]] before it ends
 */
final class BadRecordHandler(policy: ErrorPolicy, sendsLater: Boolean = false) extends Logging {
  private val context = TaskContext.get()
  private val run = TaskIdentity.ofThisTask().run
  private val recent = mutable.Queue.empty[Long]
  private var last: SourcePosition = _
  private var failuresOfLast = 0
  @volatile private var outbox: DeadLetterOutbox = _

  /** Returns if the query skips the record; throws otherwise. Any thread may call it. */
  def handle(position: SourcePosition, failure: Throwable): Unit = synchronized(apply(position, failure))

  /** Returns when all dead letters have been acknowledged. */
  def flush(): Unit = if (outbox != null) {
    outbox.flush()
  }

  /** Throws if a dead letter could not be sent. */
  def rethrowUnsent(): Unit = if (outbox != null) {
    outbox.rethrowFailure()
  }

  private def apply(position: SourcePosition, failure: Throwable): Unit = policy match {
    case _ if position == null => throw failure
    case ErrorPolicy.Fail => throw BadRecordHandler.named(position, failure)
    case ErrorPolicy.Drop(perMinute) =>
      countFailure(perMinute, position, failure)
      logWarning(s"Dropped ${describe(position)}: ${failure.getMessage}")
    case letters: ErrorPolicy.DeadLetter =>
      countFailure(letters.perMinute, position, failure)
      // Several rows of one record may fail, but the record is sent once.
      if (failuresOfLast == 1) {
        send(letters, position, failure)
      }
  }

  private def send(policy: ErrorPolicy.DeadLetter, position: SourcePosition, failure: Throwable): Unit = {
    def sendNow(): Unit = {
      DeadLetters.send(policy, position, failure)
      logWarning(s"Sent ${describe(position)} to ${policy.topic}: ${failure.getMessage}")
    }
    if (sendsLater) {
      if (outbox == null) {
        outbox = new DeadLetterOutbox(context)
      }
      outbox.add(() => sendNow())
    } else {
      sendNow()
    }
  }

  private def countFailure(perMinute: Int, position: SourcePosition, failure: Throwable): Unit = {
    failuresOfLast = if (position == last) failuresOfLast + 1 else 1
    last = position
    // The operator does not get past the record, and would fail on it forever.
    if (failuresOfLast > BadRecordHandler.MaxRowsPerRecord) {
      throw BadRecordHandler.named(position, failure)
    }
    val now = System.nanoTime()
    recent.dequeueWhile(now - _ > BadRecordHandler.MinuteNanos)
    if (failuresOfLast == 1) {
      recent.enqueue(now)
      ExecutorFigures.badRecord(run, String.valueOf(failure.getMessage).linesIterator.nextOption().getOrElse(""))
    }
    if (recent.length > perMinute) {
      throw new TailraceException(
        "TAILRACE_TOO_MANY_ERRORS",
        s"one task could not process more than $perMinute records within a minute; the last is " +
          s"${describe(position)}: " + failure.getMessage,
        s"fix the query or the producer of these records, or raise ${ErrorPolicy.LimitKey}.")
    }
  }

  private def describe(position: SourcePosition): String = SourcePosition.describe(Seq(position))
}

object BadRecordHandler {
  val Named = "TAILRACE_BAD_RECORD"
  private val MaxRowsPerRecord = 10000
  private val MinuteNanos = 60L * 1000 * 1000 * 1000

  /**
   * True if the row is to blame: a data exception of SQL (class 22), such as a bad cast, a division by zero or a text
   * that cannot be parsed, or an exception in a user's function (class 39).
   */
  def isDataError(failure: Throwable): Boolean = failure match {
    case _: TailraceException => false
    case error: SparkThrowable =>
      Option(error.getSqlState).exists(state => state.startsWith("22") || state.startsWith("39"))
    case _ => false
  }

  /** The failure with the record's position; the failure itself if the row is not to blame. */
  def named(position: SourcePosition, failure: Throwable): Throwable = if (position == null || !isDataError(failure))
    failure
  else {
    val error = new TailraceException(
      Named,
      s"${SourcePosition.describe(Seq(position))} cannot be processed: ${failure.getMessage}",
      "fix the query (try_cast, try_divide and the like return null instead), or skip such records: " +
        s".option(\"${ErrorPolicy.ActionKey}\", \"dead-letter\").option(\"${ErrorPolicy.TopicKey}\", \"…\").")
    error.initCause(failure)
    error
  }
}
