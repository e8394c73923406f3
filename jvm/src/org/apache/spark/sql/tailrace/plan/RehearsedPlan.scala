package org.apache.spark.sql.tailrace.plan

import org.apache.spark.sql.execution.SparkPlan

/** A plan that `check` only looks at. It is never run. */
object RehearsedPlan {
  /** Set in the session that plans it. */
  val Key = "spark.tailrace.rehearsal"

  def isOne(plan: SparkPlan): Boolean = plan.conf.getConfString(Key, "false") == "true"
}
