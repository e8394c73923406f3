package org.apache.spark.sql.tailrace.errors

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, SortOrder}
import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode}
import org.apache.spark.sql.tailrace.origin.CurrentRow

/**
 * At the end of a stage: if an expression fails on a row, names the row's record in the error, or skips the row, as the
 * query's policy says. The operators below process one row at a time and keep nothing of a row that failed, so they can
 * continue with the next one.
 */
case class ErrorGuardExec(child: SparkPlan, policy: ErrorPolicy) extends UnaryExecNode {
  override def output: Seq[Attribute] = child.output
  override def outputPartitioning: Partitioning = child.outputPartitioning
  override def outputOrdering: Seq[SortOrder] = child.outputOrdering
  override def nodeName: String = "ErrorGuard"
  // The policy holds the brokers' addresses and credentials.
  override protected def stringArgs: Iterator[Any] = Iterator.empty

  override protected def doExecute(): RDD[InternalRow] = {
    val ownPolicy = policy
    child.execute().mapPartitionsInternal(rows => new Guarded(rows, new BadRecordHandler(ownPolicy, sendsLater = true)))
  }

  override protected def withNewChildInternal(newChild: SparkPlan): SparkPlan = copy(child = newChild)
}

private final class Guarded(rows: Iterator[InternalRow], handler: BadRecordHandler) extends Iterator[InternalRow] {
  private val current = CurrentRow.ofThisTask()
  private var row: InternalRow = _

  override def hasNext: Boolean = {
    handler.rethrowUnsent()
    var more = true
    while (row == null && more) {
      try {
        more = rows.hasNext
        if (more) {
          row = rows.next()
        }
      } catch {
        case failure: Throwable if BadRecordHandler.isDataError(failure) =>
          handler.handle(current.position, failure)
      }
    }
    if (!more) {
      handler.flush()
    }
    more
  }

  override def next(): InternalRow = {
    if (!hasNext) {
      throw new NoSuchElementException
    }
    val result = row
    row = null
    result
  }
}
