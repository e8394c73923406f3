package org.apache.spark.sql.tailrace.epoch.overlap

import scala.jdk.CollectionConverters._

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, SortOrder}
import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode}
import org.apache.spark.sql.execution.streaming.operators.stateful.{
  StatefulOpStateStoreCheckpointInfo, StateStoreWriter
}
import org.apache.spark.sql.tailrace.epoch.context.Overlap
import org.apache.spark.sql.tailrace.operators.join.RealTimeJoinExec
import org.apache.spark.util.CollectionAccumulator

/**
 * Above a stateful operator: a task that has committed its state names the checkpoint to the task of the next epoch,
 * which continues with the store as it is.
 */
case class HandOverStateExec(child: SparkPlan, overlap: Overlap) extends UnaryExecNode {
  override def output: Seq[Attribute] = child.output
  override def outputPartitioning: Partitioning = child.outputPartitioning
  override def outputOrdering: Seq[SortOrder] = child.outputOrdering
  override def nodeName: String = "HandOverState"
  override protected def stringArgs: Iterator[Any] = Iterator.empty

  override protected def doExecute(): RDD[InternalRow] = {
    val operator = child match {
      case operator: StateStoreWriter => operator
      case other => throw new IllegalStateException(s"${other.nodeName} keeps no state")
    }
    // Tasks see the very accumulator that the operator adds to: both are in the same closure.
    val (id, number, checkpoints) =
      (overlap.id, operator.getStateInfo.operatorId, operator.checkpointInfoAccumulator)
    val rows = operator match {
      // It waits for its state and for its watermark itself.
      case _: RealTimeJoinExec => child.execute()
      case _ if overlap.follows.isDefined => LateStateRDD.of(child.execute(), LateWatermark.of(operator), id)
      case _ => child.execute()
    }
    rows.mapPartitionsWithIndexInternal { (index, results) =>
      val after = HandOvers.of(id)
      val key = HandOverKey.State(number, index)
      after.foreach(_.refuseRetry(key))
      new CommittedResults(
        results,
        () => after.foreach(_.leave(key, CommittedCheckpoint.of(checkpoints, index))))
    }
  }

  override protected def withNewChildInternal(newChild: SparkPlan): SparkPlan = copy(child = newChild)
}

private[overlap] object CommittedCheckpoint {
  /** The ids of a partition's stores. */
  def of(
      checkpoints: CollectionAccumulator[StatefulOpStateStoreCheckpointInfo],
      partition: Int): Array[String] =
    checkpoints.value.asScala.filter(_.partitionId == partition).flatMap(_.stateStoreCkptId).toSeq match {
      case Seq(ofStores) => ofStores
      case other =>
        throw new IllegalStateException(s"the state of partition $partition has ${other.length} checkpoints, not one")
    }
}

/** A stateful operator has committed when its results are over. */
private final class CommittedResults(results: Iterator[InternalRow], committed: () => Unit)
    extends Iterator[InternalRow] {
  private var isOver = false

  override def hasNext: Boolean = {
    val more = results.hasNext
    if (!more && !isOver) {
      isOver = true
      committed()
    }
    more
  }

  override def next(): InternalRow = results.next()
}
