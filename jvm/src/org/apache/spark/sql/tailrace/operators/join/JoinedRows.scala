package org.apache.spark.sql.tailrace.operators.join

import java.util.concurrent.TimeUnit.NANOSECONDS

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinHelper.JoinStateWatermarkPredicates
import org.apache.spark.sql.tailrace.operators.input.{InputRow, ThreadFedInput}
import org.apache.spark.sql.tailrace.origin.CurrentRow

/** How long a task has worked, without the time in which it waited for rows. */
private[join] final case class WorkTimes(updatesMs: Long, outerRowsMs: Long)

/**
 * The results of a join. A match belongs to the row that completed it; a row that matched nothing comes at the end of the
 * epoch, or before by [[EarlyRemoval]], and belongs to none.
 *
 * @param atEnd which rows are kept no longer when both inputs have ended
 */
private[join] final class JoinedRows(
    task: JoinTask,
    atEnd: JoinStateWatermarkPredicates,
    early: Option[EarlyRemoval],
    arrivals: ThreadFedInput,
    current: CurrentRow,
    onLate: () => Unit,
    onEnd: WorkTimes => Unit)
    extends Iterator[InternalRow] {
  private var results: Iterator[InternalRow] = Iterator.empty
  private var inputHasEnded = false
  private var isOver = false
  private var workedNanos = 0L
  private var workedBeforeEnd = 0L
  private var waitedNanos = 0L

  override def hasNext: Boolean = {
    val (began, waited) = (System.nanoTime(), waitedNanos)
    try {
      while (!isOver && !results.hasNext) {
        if (inputHasEnded) {
          isOver = true
        } else {
          results = following()
        }
      }
    } catch {
      case failure: Throwable =>
        // The row is left out if the query goes on: it has not been kept, and nothing more is made of it.
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

  private def following(): Iterator[InternalRow] = {
    // If an input fails, it is not the fault of the row that was here last; and what is over is made of none.
    current.forget()
    val over = early.fold(Iterator.empty[InternalRow])(_.look(task))
    if (over.hasNext) over else arrived()
  }

  private def arrived(): Iterator[InternalRow] = {
    val began = System.nanoTime()
    val arrival = if (early.isEmpty) arrivals.next() else arrivals.nextWithin(JoinedRows.LooksEveryMs)
    waitedNanos += System.nanoTime() - began
    if (arrival != null) {
      current.restore(arrival.origin)
      early.foreach(_.sees(arrival))
      if (isLate(arrival)) {
        onLate()
        Iterator.empty
      } else {
        task.join(arrival)
      }
    } else if (arrivals.hasEnded) {
      inputHasEnded = true
      workedBeforeEnd = workedNanos
      task.outerRows(atEnd)
    } else {
      Iterator.empty
    }
  }

  private def isLate(arrival: InputRow): Boolean = task.isLate(arrival) || early.exists(_.isLate(arrival))

  private var hasTold = false
  private def end(): Unit = if (!hasTold) {
    hasTold = true
    onEnd(WorkTimes(NANOSECONDS.toMillis(workedNanos), NANOSECONDS.toMillis(workedNanos - workedBeforeEnd)))
  }
}

private object JoinedRows {
  private val LooksEveryMs = 100L
}
