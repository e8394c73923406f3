package org.apache.spark.sql.tailrace.operators.join

import java.util.concurrent.TimeUnit.NANOSECONDS

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinHelper.JoinStateWatermarkPredicates
import org.apache.spark.sql.tailrace.operators.input.{InputRow, ThreadFedInput}
import org.apache.spark.sql.tailrace.origin.CurrentRow

/** How long a task has worked, excluding the time in which it waited for rows. */
private[join] final case class WorkTimes(updatesMs: Long, outerRowsMs: Long)

/**
 * The results of a join. A match has the origin of the row that completed it. A row without a match is emitted at the
 * end of the epoch, or earlier by [[EarlyRemoval]], and has no origin.
 *
 * @param open  opens the state, when the first result is asked for: in an epoch that is started ahead, it waits for the
 *              state while the inputs connect
 * @param atEnd which rows are removed when both inputs have ended; asked then
 */
private[join] final class JoinedRows(
    open: () => JoinTask,
    atEnd: () => JoinStateWatermarkPredicates,
    early: Option[EarlyRemoval],
    arrivals: ThreadFedInput,
    current: CurrentRow,
    onLate: () => Unit,
    onEnd: WorkTimes => Unit)
    extends Iterator[InternalRow] {
  private lazy val task = open()
  private var results: Iterator[InternalRow] = Iterator.empty
  private var inputHasEnded = false
  private var isOver = false
  private var workedNanos = 0L
  private var workedBeforeEnd = 0L
  private var waitedNanos = 0L

  override def hasNext: Boolean = {
    task // before the time is taken
    val (began, waited) = (System.nanoTime(), waitedNanos)
    try {
      while (!isOver && !results.hasNext) {
        if (inputHasEnded) {
          isOver = true
        } else {
          results = nextResults()
        }
      }
    } catch {
      case failure: Throwable =>
        // If the query skips bad records, it skips this row: the row is not in the state, and has no further results.
        results = Iterator.empty
        throw failure
    }
    workedNanos += System.nanoTime() - began - (waitedNanos - waited)
    if (isOver) {
      end()
    }
    !isOver
  }

  override def next(): InternalRow = if (hasNext) results.next() else throw new NoSuchElementException

  private def nextResults(): Iterator[InternalRow] = {
    // A failure of an input does not belong to the last row, and neither do rows that are emitted without a match.
    current.forget()
    val outerRows = early.fold(Iterator.empty[InternalRow])(_.removeIfDue(task))
    if (outerRows.hasNext) outerRows else joinNext()
  }

  private def joinNext(): Iterator[InternalRow] = {
    val arrival = waitFor(if (early.isEmpty) arrivals.next() else arrivals.nextWithin(JoinedRows.PollMs))
    if (arrival != null) {
      current.restore(arrival.origin)
      early.foreach(_.observe(arrival))
      if (isLate(arrival)) {
        onLate()
        Iterator.empty
      } else {
        task.join(arrival)
      }
    } else if (arrivals.hasEnded) {
      inputHasEnded = true
      workedBeforeEnd = workedNanos
      task.outerRows(waitFor(atEnd()))
    } else {
      Iterator.empty
    }
  }

  private def waitFor[T](value: => T): T = {
    val began = System.nanoTime()
    val found = value
    waitedNanos += System.nanoTime() - began
    found
  }

  private def isLate(arrival: InputRow): Boolean = task.isLate(arrival) || early.exists(_.isLate(arrival))

  private var hasReported = false
  private def end(): Unit = if (!hasReported) {
    hasReported = true
    onEnd(WorkTimes(NANOSECONDS.toMillis(workedNanos), NANOSECONDS.toMillis(workedNanos - workedBeforeEnd)))
  }
}

private object JoinedRows {
  private val PollMs = 100L
}
