package org.apache.spark.sql.tailrace.operators.python

import org.apache.spark.TaskContext
import org.apache.spark.sql.tailrace.origin.{CurrentRow, SourcePosition}

/**
 * The errors of one exchange, each with the records that the worker was busy with.
 *
 * @param inputRow   knows the source partitions of the rows
 * @param repeatable true if the functions may be called again to find the row at which they failed
 */
private[python] final class ExchangeErrors(
    backlog: Backlog,
    inputRow: CurrentRow,
    connect: () => WorkerConnection,
    repeatable: Boolean,
    limits: PythonLimits,
    context: TaskContext) {

  /** An exception in the user's function. */
  def raised(failure: PythonFailure): Throwable = {
    val batch = backlog.atWork
    failure.row match {
      case Some(row) => PythonErrors.raised(failure.traceback, batch.map(positions(_).slice(row, row + 1)))
      case None => batch.flatMap(failureOfOneRow).getOrElse(PythonErrors.raised(failure.traceback, atWork))
    }
  }

  /** The worker closed its socket without a reason. */
  def lost(cause: Throwable, crashReport: Option[String]): Throwable = PythonErrors.lost(cause, crashReport, atWork)

  def timedOut(): Throwable =
    if (backlog.holdsTooMany) PythonErrors.heldBack(limits.timeoutMs)
    else PythonErrors.timedOut(limits.timeoutMs, atWork)

  private def failureOfOneRow(batch: Batch): Option[Throwable] =
    if (!repeatable || batch.entries.length == 1 || positions(batch).contains(null)) None
    else FailingRowSearch.failureOf(batch, connect, limits, context)

  private def atWork: PythonErrors.AtWork = backlog.atWork.map(positions)

  private def positions(batch: Batch): Seq[SourcePosition] =
    batch.entries.toSeq.map(entry => inputRow.partitions.positionOf(entry.origin))
}
