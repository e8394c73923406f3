package tailrace

import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.{ColumnarRule, SparkPlan}
import org.apache.spark.sql.tailrace.epoch.{CheckPlannedEpoch, PlanEpoch}
import org.apache.spark.sql.tailrace.operators.python.{HideTransformWithState, PlanTransformWithState}
import org.apache.spark.sql.tailrace.plan.SessionStatus
import org.apache.spark.sql.tailrace.preflight.CheckRealTimeQuery

/**
 * What Tailrace adds to a session, in the order in which a query meets it:
 *
 *  1. [[CheckRealTimeQuery]]: at `start()`, refuses what cannot run in Real-Time Mode, and names an alternative.
 *  1. [[HideTransformWithState]], [[PlanTransformWithState]]: plan Python's `transformWithState` row by row.
 *  1. [[PlanEpoch]]: before each epoch, prepares it and puts Tailrace's operators into its plan.
 *  1. [[CheckPlannedEpoch]]: refuses what another extension has added to the plan since.
 *
 * The checks replace Spark's allowlist, which [[TailracePlugin]] switches off.
 */
class TailraceExtensions extends (SparkSessionExtensions => Unit) {
  override def apply(extensions: SparkSessionExtensions): Unit = {
    // Of the injected batches, only the one for hints still sees the statement with its trigger:
    // Spark's own resolution rules run before the others and drop it.
    extensions.injectHintResolutionRule(_ => CheckRealTimeQuery)
    extensions.injectFunction(SessionStatus.function)
    // The last injected rules before physical planning, where Spark's own strategies come first.
    extensions.injectPreCBORule(_ => HideTransformWithState)
    extensions.injectPlannerStrategy(_ => PlanTransformWithState)
    // Runs after exchanges are planned and before Spark marks them as pipelined.
    extensions.injectColumnar(_ => RealTimePlan)
  }

  private object RealTimePlan extends ColumnarRule {
    override def preColumnarTransitions: Rule[SparkPlan] = PlanEpoch
    override def postColumnarTransitions: Rule[SparkPlan] = CheckPlannedEpoch
  }
}
