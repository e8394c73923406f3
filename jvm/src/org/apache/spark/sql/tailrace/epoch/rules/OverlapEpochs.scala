package org.apache.spark.sql.tailrace.epoch.rules

import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.datasources.v2.WriteToDataSourceV2Exec
import org.apache.spark.sql.execution.streaming.operators.stateful.StateStoreWriter
import org.apache.spark.sql.tailrace.epoch.context.{EpochContext, EpochRule, Overlap}
import org.apache.spark.sql.tailrace.epoch.overlap.{
  HandOverStateExec, KeepOrderExec, OverlappedWriteExec, TakenOverEpoch
}
import org.apache.spark.sql.tailrace.operators.state.TakesOverState

/** Lets the next epoch begin while the tasks of this one still run. */
object OverlapEpochs extends EpochRule {
  override def apply(plan: SparkPlan, epoch: EpochContext): SparkPlan = (plan, epoch.overlap) match {
    case (write: WriteToDataSourceV2Exec, Some(overlap)) => overlapped(write, overlap)
    case _ => plan
  }

  private def overlapped(write: WriteToDataSourceV2Exec, overlap: Overlap): SparkPlan = {
    val query = KeepOrderExec(handingOverState(write.query, overlap), overlap)
    val result = new OverlappedWriteExec(
      write.batchWrite,
      write.refreshCache,
      query,
      write.writeMetrics,
      write.transaction,
      overlap)
    result.copyTagsFrom(write)
    result
  }

  private def takingOver(operator: SparkPlan, overlap: Overlap): SparkPlan =
    (operator, TakenOverEpoch.of(overlap)) match {
      case (operator: TakesOverState, Some(epoch)) => operator.takingOver(epoch)
      case _ => operator
    }

  private def handingOverState(plan: SparkPlan, overlap: Overlap): SparkPlan = plan.transformUp {
    case operator: StateStoreWriter => HandOverStateExec(takingOver(operator, overlap), overlap)
  }
}
