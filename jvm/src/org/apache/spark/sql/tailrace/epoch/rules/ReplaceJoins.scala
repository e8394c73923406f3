package org.apache.spark.sql.tailrace.epoch.rules

import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinExec
import org.apache.spark.sql.tailrace.epoch.context.{EpochContext, EpochRule}
import org.apache.spark.sql.tailrace.errors.{ErrorGuardExec, ErrorPolicy}
import org.apache.spark.sql.tailrace.operators.join.RealTimeJoinExec
import org.apache.spark.sql.tailrace.operators.state.IntraEpochWatermark
import org.apache.spark.sql.tailrace.plan.Stages

/**
 * In a real-time plan, replaces Spark's join, which reads one side after the other, with one that reads both at the
 * same time.
 */
object ReplaceJoins extends EpochRule {
  override def apply(plan: SparkPlan, epoch: EpochContext): SparkPlan =
    if (plan.exists(isSparks)) replaced(plan, epoch.onError) else plan

  private def replaced(plan: SparkPlan, onError: ErrorPolicy): SparkPlan = plan.transformUp {
    // Each side is read in a thread of its own, which has its own CurrentRow.
    case join: StreamingSymmetricHashJoinExec if isSparks(join) =>
      IntraEpochWatermark.checkSetting(plan.conf)
      RealTimeJoinExec.of(join, ErrorGuardExec(join.left, onError), ErrorGuardExec(join.right, onError))
  }

  private def isSparks(node: SparkPlan): Boolean = node match {
    case _: RealTimeJoinExec => false
    case join: StreamingSymmetricHashJoinExec => Stages.reads(join.left) && Stages.reads(join.right)
    case _ => false
  }
}
