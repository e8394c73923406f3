package org.apache.spark.sql.tailrace.operators.session

import java.util.concurrent.TimeUnit.NANOSECONDS

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.tailrace.origin.CurrentRow

/**
 * What a task passes on. Results of a row belong to its record; closed sessions belong to none, whichever row happens to be there.
 *
 * @param early lets sessions close before the rows have ended
 */
private[session] final class SessionResults(
    sessions: TaskSessions,
    tellsUpdates: Boolean,
    tellsClosings: Boolean,
    early: Option[EarlyClosing],
    current: CurrentRow,
    onLate: () => Unit) {
  private var workedNanos = 0L

  def workedMs: Long = NANOSECONDS.toMillis(workedNanos)

  /** @param isOver which sessions are closed when the rows have ended */
  def of(rows: Iterator[UnsafeRow], isOver: Option[UnsafeRow => Boolean]): Iterator[UnsafeRow] = {
    lazy val closed = {
      current.forget()
      isOver.fold(Iterator.empty[UnsafeRow])(close)
    }
    rows.flatMap(row => early.fold(add(row))(addOrClose(row, _))) ++ closed
  }

  private def add(row: UnsafeRow): Iterator[UnsafeRow] = {
    val began = System.nanoTime()
    val changed = sessions.add(row)
    workedNanos += System.nanoTime() - began
    if (tellsUpdates) changed.iterator else Iterator.empty
  }

  private def addOrClose(row: UnsafeRow, early: EarlyClosing): Iterator[UnsafeRow] = {
    early.sees(row)
    val changed = if (early.isLate(row)) {
      onLate()
      Iterator.empty
    } else {
      add(row)
    }
    // Looked for when the row's own results have been taken.
    changed ++ {
      val closed = early.look(close(_).map(_.copy()).toSeq)
      if (closed.nonEmpty) {
        current.forget()
      }
      closed
    }
  }

  private def close(isOver: UnsafeRow => Boolean): Iterator[UnsafeRow] = {
    val closed = sessions.close(isOver)
    if (tellsClosings) {
      closed
    } else {
      closed.foreach(_ => ())
      Iterator.empty
    }
  }
}
