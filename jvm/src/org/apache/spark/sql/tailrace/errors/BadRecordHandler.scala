package org.apache.spark.sql.tailrace.errors

import scala.collection.mutable

import org.apache.spark.SparkThrowable
import org.apache.spark.internal.Logging
import org.apache.spark.sql.tailrace.metrics.{ExecutorFigures, TaskIdentity}
import org.apache.spark.sql.tailrace.origin.SourcePosition

import tailrace.TailraceException

/** In a task: does with a record that cannot be processed what the query's policy says. */
final class BadRecordHandler(policy: ErrorPolicy) extends Logging {
  private val run = TaskIdentity.ofThisTask().run
  private val recent = mutable.Queue.empty[Long]
  private var last: SourcePosition = _
  private var failuresOfLast = 0

  /** Returns if the query is to go on without the record; throws otherwise. */
  def handle(position: SourcePosition, failure: Throwable): Unit = policy match {
    case _ if position == null => throw failure
    case ErrorPolicy.Fail => throw BadRecordHandler.named(position, failure)
    case ErrorPolicy.Drop(perMinute) =>
      stayBelow(perMinute, position, failure)
      logWarning(s"Dropped ${describe(position)}: ${failure.getMessage}")
    case letters: ErrorPolicy.DeadLetter =>
      stayBelow(letters.perMinute, position, failure)
      // Several rows of one record may fail; it is one letter.
      if (failuresOfLast == 1) {
        DeadLetters.send(letters, position, failure)
        logWarning(s"Sent ${describe(position)} to ${letters.topic}: ${failure.getMessage}")
      }
  }

  private def stayBelow(perMinute: Int, position: SourcePosition, failure: Throwable): Unit = {
    failuresOfLast = if (position == last) failuresOfLast + 1 else 1
    last = position
    // Whatever failed does not get past the record, and would fail for ever.
    if (failuresOfLast > BadRecordHandler.MostRowsOfARecord) {
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
        s"more than $perMinute records in a minute could not be processed by one task; the last is ${describe(position)}: " +
          failure.getMessage,
        s"mend the query or what writes these records, or raise ${ErrorPolicy.LimitKey}.")
    }
  }

  private def describe(position: SourcePosition): String = SourcePosition.describe(Seq(position))
}

object BadRecordHandler {
  val Named = "TAILRACE_BAD_RECORD"
  private val MostRowsOfARecord = 10000
  private val MinuteNanos = 60L * 1000 * 1000 * 1000

  /**
   * Whether it is the row's fault: a data exception of SQL, such as a bad cast, a division by zero or a text that cannot be
   * parsed (class 22), or an exception in a function of the user's (class 39).
   */
  def isDataError(failure: Throwable): Boolean = failure match {
    case _: TailraceException => false
    case error: SparkThrowable =>
      Option(error.getSqlState).exists(state => state.startsWith("22") || state.startsWith("39"))
    case _ => false
  }

  /** The same failure, with the record's name. */
  def named(position: SourcePosition, failure: Throwable): Throwable = if (position == null || !isDataError(failure))
    failure
  else {
    val error = new TailraceException(
      Named,
      s"${SourcePosition.describe(Seq(position))} cannot be processed: ${failure.getMessage}",
      "mend the query (try_cast, try_divide and the like give null instead), or let it go on without such records: " +
        s".option(\"${ErrorPolicy.ActionKey}\", \"dead-letter\").option(\"${ErrorPolicy.TopicKey}\", \"…\").")
    error.initCause(failure)
    error
  }
}
