package org.apache.spark.sql.tailrace.epoch.rules

import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.tailrace.epoch.context.{EpochContext, EpochRule}
import org.apache.spark.sql.tailrace.operators.python.RealTimeTransformWithStateExec

/**
 * While a query catches up with its sources, its processing-time timers fire as in micro-batch: when the epoch has read
 * what was waiting. Otherwise a key would be called silent although its next record is there.
 */
object FireTimersAfterRows extends EpochRule {
  override def apply(plan: SparkPlan, epoch: EpochContext): SparkPlan = {
    if (epoch.scans.exists(_.waiting.isDefined)) {
      plan.foreach {
        case operator: RealTimeTransformWithStateExec => operator.fireTimersAfterRows()
        case _ =>
      }
    }
    plan
  }
}
