package org.apache.spark.sql.tailrace.epoch.rules

import org.apache.spark.sql.catalyst.plans.logical.ProcessingTime
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.streaming.operators.stateful.transformwithstate.TransformWithStateExec
import org.apache.spark.sql.tailrace.epoch.context.{EpochContext, EpochRule}
import org.apache.spark.sql.tailrace.errors.{ErrorGuardExec, ErrorPolicy}
import org.apache.spark.sql.tailrace.operators.state.{IdleTicksExec, UntickedProcessor}
import org.apache.spark.sql.tailrace.plan.Stages

/**
 * In a real-time plan, fires the processing-time timers and applies the TTL of `transformWithState` while no row
 * arrives. Spark checks timers after each row, so an idle input gets an artificial row, which the user's processor
 * does not see.
 *
 * Event-time timers depend on the watermark, which does not move within an epoch.
 */
object FireTimersWhenIdle extends EpochRule {
  override def apply(plan: SparkPlan, epoch: EpochContext): SparkPlan =
    if (epoch.addsOperators && plan.exists(waitsForRows)) withTicks(plan, epoch.onError) else plan

  private def withTicks(plan: SparkPlan, onError: ErrorPolicy): SparkPlan = plan.transformUp {
    case operator: TransformWithStateExec if waitsForRows(operator) =>
      // The input is read in a thread of its own, which has its own CurrentRow.
      val input =
        IdleTicksExec(ErrorGuardExec(operator.child, onError), operator.keyDeserializer, operator.groupingAttributes)
      operator.copy(statefulProcessor = new UntickedProcessor(operator.statefulProcessor), child = input)
  }

  private def waitsForRows(node: SparkPlan): Boolean = node match {
    case operator: TransformWithStateExec =>
      operator.isRealTimeMode && operator.timeMode == ProcessingTime && !operator.hasInitialState &&
      !operator.child.isInstanceOf[IdleTicksExec] && Stages.reads(operator.child)
    case _ => false
  }
}
