package org.apache.spark.sql.tailrace.epoch

import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.datasources.v2.RealTimeStreamScanExec
import org.apache.spark.sql.tailrace.epoch.drain.DrainableScanExec
import org.apache.spark.sql.tailrace.epoch.overlap.PlanAhead
import org.apache.spark.sql.tailrace.epoch.rules.RefuseUnsupported
import org.apache.spark.sql.tailrace.operators.origin.OriginFromSourceExec
import org.apache.spark.sql.tailrace.plan.Stages

/**
 * Makes Spark's plan of an epoch Tailrace's: [[PrepareEpoch]] does what has effects, then [[EpochRules]] change the
 * plan. This is the only rule that may block: Spark has no other hook between two epochs. The rules that change the
 * plan are pure.
 *
 * Spark calls this for every plan of a session, such as those of batch queries and subqueries, and possibly again for a
 * plan that has been here before. Only a real-time plan that is new is prepared.
 */
object PlanEpoch extends Rule[SparkPlan] {
  override def apply(plan: SparkPlan): SparkPlan =
    if (!Stages.reads(plan) || isPlanned(plan)) plan
    else if (RehearsedSource.isReadBy(plan)) EpochRules.applyAll(plan, PrepareEpoch.rehearsal(plan))
    else EpochRules.applyAll(plan, PlanAhead.follows.fold(PrepareEpoch(plan))(PrepareEpoch.ahead(plan, _)))

  private def isPlanned(plan: SparkPlan): Boolean = plan.exists {
    case _: DrainableScanExec | _: OriginFromSourceExec => true
    case _ => false
  }
}

/** Checks the plan once more at the end: another extension's rules may have replaced operators in between. */
object CheckPlannedEpoch extends Rule[SparkPlan] {
  override def apply(plan: SparkPlan): SparkPlan =
    if (RehearsedSource.isReadBy(plan)) plan else RefuseUnsupported.refuseOrPass(plan)
}

/** A stream that stands in for a real source. A plan that reads one is a rehearsal: it is looked at and never run. */
trait RehearsedSource

private object RehearsedSource {
  def isReadBy(plan: SparkPlan): Boolean = plan.exists {
    case scan: RealTimeStreamScanExec => scan.stream.isInstanceOf[RehearsedSource]
    case _ => false
  }
}
