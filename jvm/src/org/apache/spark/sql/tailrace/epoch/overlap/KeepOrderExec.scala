package org.apache.spark.sql.tailrace.epoch.overlap

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, SortOrder}
import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode}
import org.apache.spark.sql.tailrace.epoch.context.Overlap

/**
 * Below the write: the first row of an epoch waits until the sink has been given the last one of the epoch before.
 * Otherwise a row could overtake others that are still in a Python worker.
 */
case class KeepOrderExec(child: SparkPlan, overlap: Overlap) extends UnaryExecNode {
  override def output: Seq[Attribute] = child.output
  override def outputPartitioning: Partitioning = child.outputPartitioning
  override def outputOrdering: Seq[SortOrder] = child.outputOrdering
  override def nodeName: String = "KeepOrder"
  override protected def stringArgs: Iterator[Any] = Iterator.empty

  override protected def doExecute(): RDD[InternalRow] = {
    val (id, takesOver) = (overlap.id, overlap.follows.isDefined)
    child.execute().mapPartitionsWithIndexInternal { (index, rows) =>
      val before = Option.when(takesOver)(TakenOver.from(id))
      new InOrder(rows, HandOverKey.Output(index), before, HandOvers.of(id))
    }
  }

  override protected def withNewChildInternal(newChild: SparkPlan): SparkPlan = copy(child = newChild)
}

private final class InOrder(
    rows: Iterator[InternalRow],
    key: HandOverKey,
    before: Option[HandOver],
    after: Option[HandOver])
    extends Iterator[InternalRow] {
  private var mayPass = before.isEmpty
  private var isOver = false

  override def hasNext: Boolean = {
    val more = rows.hasNext
    if (!mayPass) {
      before.foreach(_.take(key, TakenOver.cancellationOfThisTask()))
      mayPass = true
    }
    if (!more && !isOver) {
      isOver = true
      after.foreach(_.leave(key, InOrder.AllWritten))
    }
    more
  }

  override def next(): InternalRow = rows.next()
}

private object InOrder {
  private val AllWritten = "all written"
}
