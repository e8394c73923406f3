package org.apache.spark.sql.tailrace.epoch.context

import org.apache.spark.sql.execution.SparkPlan

/**
 * One step from Spark's plan of an epoch to Tailrace's. A rule is a pure function: it does not block, do I/O or
 * register anything, and gives equal plans for equal arguments. Whatever has an effect happens before, in
 * `PrepareEpoch`.
 */
trait EpochRule {
  def apply(plan: SparkPlan, epoch: EpochContext): SparkPlan
}
