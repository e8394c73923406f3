package org.apache.spark.sql.tailrace.epoch.rules

import org.apache.spark.sql.execution.{SortExec, SparkPlan}
import org.apache.spark.sql.execution.aggregate.{BaseAggregateExec, MergingSessionsExec}
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec
import org.apache.spark.sql.execution.streaming.ProjectAggregationBufferExec
import org.apache.spark.sql.execution.streaming.operators.stateful.{
  SessionWindowStateStoreRestoreExec, SessionWindowStateStoreSaveExec
}
import org.apache.spark.sql.tailrace.epoch.context.{EpochContext, EpochRule}
import org.apache.spark.sql.tailrace.operators.session.RealTimeSessionsExec
import org.apache.spark.sql.tailrace.operators.state.IntraEpochWatermark
import org.apache.spark.sql.tailrace.plan.Stages

/**
 * In a real-time plan, replaces Spark's operators for session windows. Spark's sort the rows before and after the
 * shuffle, merge them with the sessions in the state and write the sessions back, each step for the whole epoch. Here
 * each row goes through all steps by itself.
 */
object ReplaceSessions extends EpochRule {
  override def apply(plan: SparkPlan, epoch: EpochContext): SparkPlan =
    if (plan.exists(isSparks)) replaced(plan) else plan

  private def replaced(plan: SparkPlan): SparkPlan = plan.transformUp {
    case save: SessionWindowStateStoreSaveExec if isSparks(save) =>
      IntraEpochWatermark.checkSetting(plan.conf)
      val merging = unsorted(save.child).asInstanceOf[MergingSessionsExec]
      val restore = unsorted(merging.child).asInstanceOf[SessionWindowStateStoreRestoreExec]
      RealTimeSessionsExec.of(save, merging, initialized(unsorted(restore.child)))
    case aggregate: BaseAggregateExec if unsorted(aggregate.child).isInstanceOf[RealTimeSessionsExec] =>
      rowByRow(aggregate, unsorted(aggregate.child), isFinal = true)
  }

  private def isSparks(node: SparkPlan): Boolean = node match {
    case _: RealTimeSessionsExec => false
    case save: SessionWindowStateStoreSaveExec => Stages.reads(save)
    case _ => false
  }

  /** Each row as a session by itself. */
  private def initialized(rows: SparkPlan): SparkPlan = rows match {
    case shuffle: ShuffleExchangeExec => shuffle.withNewChildren(Seq(initialized(unsorted(shuffle.child))))
    // If the user asks for it, Spark merges sessions before the shuffle as well.
    case merging: MergingSessionsExec => initialized(unsorted(merging.child))
    case aggregate: BaseAggregateExec => rowByRow(aggregate, unsorted(aggregate.child), isFinal = false)
    case other =>
      throw new IllegalStateException(s"unexpected plan for a session window: ${other.nodeName}")
  }

  private def rowByRow(aggregate: BaseAggregateExec, rows: SparkPlan, isFinal: Boolean): SparkPlan = {
    val projected = ProjectAggregationBufferExec(
      requiredChildDistributionExpressions = aggregate.requiredChildDistributionExpressions,
      numShufflePartitions = aggregate.numShufflePartitions,
      groupingExpressions = aggregate.groupingExpressions,
      aggregateExpressions = aggregate.aggregateExpressions,
      aggregateAttributes = aggregate.aggregateAttributes,
      initialInputBufferOffset = aggregate.initialInputBufferOffset,
      resultExpressions = aggregate.resultExpressions,
      isFinalAggregate = isFinal,
      child = rows)
    projected.copyTagsFrom(aggregate)
    projected
  }

  private def unsorted(plan: SparkPlan): SparkPlan = plan match {
    case sort: SortExec => sort.child
    case other => other
  }
}
