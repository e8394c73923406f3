package org.apache.spark.sql.tailrace.epoch.rules

import org.apache.spark.sql.catalyst.plans.logical.ProcessingTime
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.streaming.operators.stateful.transformwithstate.TransformWithStateExec
import org.apache.spark.sql.tailrace.epoch.context.{EpochContext, EpochRule}
import org.apache.spark.sql.tailrace.errors.{ErrorGuardExec, ErrorPolicy}
import org.apache.spark.sql.tailrace.operators.state.{IdleTicksExec, UntickedProcessor}
import org.apache.spark.sql.tailrace.plan.Stages

/**
 * In a real-time plan, lets the processing-time timers and the TTL of `transformWithState` do their work while no row comes. Spark looks
 * for expired ones behind each row; here it is given a row to look behind when there is none, which the user's processor does
 * not see.
 *
 * Timers in event time go by the watermark, which stands still within an epoch.
 */
object FireTimersWhenIdle extends EpochRule {
  override def apply(plan: SparkPlan, epoch: EpochContext): SparkPlan =
    if (epoch.addsOperators && plan.exists(waitsForRows)) withTicks(plan, epoch.onError) else plan

  private def withTicks(plan: SparkPlan, onError: ErrorPolicy): SparkPlan = plan.transformUp {
    case operator: TransformWithStateExec if waitsForRows(operator) =>
      // The input is read in a thread of its own, where the row at hand is another one.
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
