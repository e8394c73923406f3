package org.apache.spark.sql.tailrace.operators.python

import java.util.concurrent.TimeUnit.NANOSECONDS

import scala.util.Try

import org.apache.spark.TaskContext
import org.apache.spark.api.python.PythonException
import org.apache.spark.sql.tailrace.origin.CurrentRow

/**
 * Finds the row at which the functions failed, when all that is known is the batch: the rows are sent once more to
 * another worker, one at a time.
 */
private[python] object FailingRowSearch {
  // The query is failing anyway: the exact record is worth half a minute, also on a machine that is busy.
  private val SearchMs = 30000L

  /** The failure that names one record; None if no row fails on its own or the search takes too long. */
  def failureOf(
      batch: Batch,
      connect: () => WorkerConnection,
      limits: PythonLimits,
      context: TaskContext): Option[Throwable] = {
    val current = CurrentRow.ofThisTask()
    val rows = batch.entries.iterator.map { entry =>
      current.restore(entry.origin)
      entry.row
    }
    val oneByOne = PythonLimits(math.min(limits.timeoutMs, SearchMs), maxRowsPerBatch = 1)
    val exchange = new WorkerExchange(rows, connect, keepsRows = true, repeatable = false, oneByOne, context)
    val begun = System.nanoTime()
    Try {
      while (exchange.hasNext && NANOSECONDS.toMillis(System.nanoTime() - begun) < SearchMs) {
        exchange.next()
      }
    }.failed.toOption.filter(_.isInstanceOf[PythonException])
  }
}
