package org.apache.spark.sql.tailrace.operators.session

import java.util.concurrent.TimeUnit.NANOSECONDS

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.tailrace.origin.CurrentRow

/**
 * The results of a task. The session of a row has the row's origin. Closed sessions have none, whichever row closed
 * them.
 *
 * @param sessions evaluated with the first row
 * @param early    closes sessions before the input ends
 */
private[session] final class SessionResults(
    sessions: => TaskSessions,
    emitsUpdates: Boolean,
    emitsClosed: Boolean,
    early: Option[EarlyClosing],
    current: CurrentRow,
    onLate: () => Unit) {
  private var workedNanos = 0L

  def workedMs: Long = NANOSECONDS.toMillis(workedNanos)

  /** @param isClosed which sessions are closed at the end of the input; evaluated there */
  def of(rows: Iterator[UnsafeRow], isClosed: => Option[UnsafeRow => Boolean]): Iterator[UnsafeRow] = {
    lazy val closed = {
      current.forget()
      isClosed.fold(Iterator.empty[UnsafeRow])(close)
    }
    rows.flatMap(row => early.fold(add(row))(addOrClose(row, _))) ++ closed
  }

  private def add(row: UnsafeRow): Iterator[UnsafeRow] = {
    val began = System.nanoTime()
    val changed = sessions.add(row)
    workedNanos += System.nanoTime() - began
    if (emitsUpdates) changed.iterator else Iterator.empty
  }

  private def addOrClose(row: UnsafeRow, early: EarlyClosing): Iterator[UnsafeRow] = {
    early.observe(row)
    val changed = if (early.isLate(row)) {
      onLate()
      Iterator.empty
    } else {
      add(row)
    }
    // Evaluated lazily, after the row's own results have been read.
    changed ++ {
      val closed = early.closeIfDue(close(_).map(_.copy()).toSeq)
      if (closed.nonEmpty) {
        current.forget()
      }
      closed
    }
  }

  private def close(isClosed: UnsafeRow => Boolean): Iterator[UnsafeRow] = {
    val closed = sessions.close(isClosed)
    if (emitsClosed) {
      closed
    } else {
      closed.foreach(_ => ())
      Iterator.empty
    }
  }
}
