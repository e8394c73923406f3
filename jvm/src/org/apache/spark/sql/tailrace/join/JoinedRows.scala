package org.apache.spark.sql.tailrace.join

import java.util.concurrent.TimeUnit.NANOSECONDS

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.tailrace.feed.Arrivals
import org.apache.spark.sql.tailrace.provenance.CurrentRow

/** How long a task has worked, without the time in which it waited for rows. */
private[join] final case class JoinTimes(updatesMs: Long, outerRowsMs: Long)

/**
 * The results of a join. A match belongs to the row that completed it; a row that matched nothing comes at the end of the
 * epoch and belongs to none.
 */
private[join] final class JoinedRows(
    task: JoinTask,
    arrivals: Arrivals,
    current: CurrentRow,
    onLate: () => Unit,
    onEnd: JoinTimes => Unit)
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
    val began = System.nanoTime()
    // If an input fails, it is not the fault of the row that was here last; and what comes at the end is made of none.
    current.forget()
    val arrival = arrivals.next()
    waitedNanos += System.nanoTime() - began
    if (arrival == null) {
      inputHasEnded = true
      workedBeforeEnd = workedNanos
      task.outerRows()
    } else {
      current.restore(arrival.origin)
      if (task.isLate(arrival)) {
        onLate()
        Iterator.empty
      } else {
        task.join(arrival)
      }
    }
  }

  private var hasTold = false
  private def end(): Unit = if (!hasTold) {
    hasTold = true
    onEnd(JoinTimes(NANOSECONDS.toMillis(workedNanos), NANOSECONDS.toMillis(workedNanos - workedBeforeEnd)))
  }
}
