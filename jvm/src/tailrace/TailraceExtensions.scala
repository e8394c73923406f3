package tailrace

import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.execution.{ColumnarRule, SparkPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.tailrace.epoch.CheckRealTimePlan
import org.apache.spark.sql.tailrace.preflight.CheckRealTimeQuery
import org.apache.spark.sql.tailrace.epoch.drain.AllowDrains
import org.apache.spark.sql.tailrace.epoch.ReplaceJoins
import org.apache.spark.sql.tailrace.epoch.TrackOrigins
import org.apache.spark.sql.tailrace.operators.python.{HideTransformWithState, PlanTransformWithState}
import org.apache.spark.sql.tailrace.epoch.ReplacePythonOperators
import org.apache.spark.sql.tailrace.epoch.ReplaceSessions
import org.apache.spark.sql.tailrace.plan.SessionStatus
import org.apache.spark.sql.tailrace.epoch.FireTimersWhenIdle
import org.apache.spark.sql.tailrace.epoch.warmup.WarmStart

/**
 * What Tailrace adds to a session, in the order in which a query meets it:
 *
 *  1. [[CheckRealTimeQuery]]: at `start()`, refuses what cannot run in Real-Time Mode, and says what to do instead.
 *  1. [[HideTransformWithState]], [[PlanTransformWithState]]: plan Python's `transformWithState` row by row.
 *  1. [[ReplacePythonOperators]]: before each epoch, gives Python functions operators that pass rows on at once.
 *  1. [[ReplaceJoins]], [[ReplaceSessions]]: the same for joins of two streams and for session windows.
 *  1. [[FireTimersWhenIdle]]: lets the timers of `transformWithState` fire while no row comes.
 *  1. [[TrackOrigins]]: lets each row's origin follow it, which is how errors name a record and latencies are known.
 *  1. [[WarmStart]]: keeps the first epochs of a run short, while the JVM is cold.
 *  1. [[AllowDrains]]: lets an epoch be ended early, and none begin after that.
 *  1. [[CheckRealTimePlan]]: then refuses what only the planner decides, such as the kind of a join.
 *
 * The checks stand in for Spark's allowlist, which [[TailracePlugin]] hands over.
 */
class TailraceExtensions extends (SparkSessionExtensions => Unit) {
  override def apply(extensions: SparkSessionExtensions): Unit = {
    // The batch for hints is the only injected one that still sees the statement with its trigger:
    // Spark's own resolution rules come before all others and drop it.
    extensions.injectHintResolutionRule(_ => CheckRealTimeQuery)
    extensions.injectFunction(SessionStatus.function)
    // The last injected rules before physical planning, where Spark's own strategies come first.
    extensions.injectPreCBORule(_ => HideTransformWithState)
    extensions.injectPlannerStrategy(_ => PlanTransformWithState)
    // Runs after exchanges are planned and before Spark marks them as pipelined.
    extensions.injectColumnar(_ => RealTimePlan)
  }

  private object RealTimePlan extends ColumnarRule {
    override def preColumnarTransitions: Rule[SparkPlan] = new Rule[SparkPlan] {
      override def apply(plan: SparkPlan): SparkPlan =
        CheckRealTimePlan(AllowDrains(
          WarmStart(TrackOrigins(FireTimersWhenIdle(ReplaceSessions(ReplaceJoins(ReplacePythonOperators(plan))))))))
    }
    // Once more at the end: another extension's rules may have replaced operators in between.
    override def postColumnarTransitions: Rule[SparkPlan] = CheckRealTimePlan
  }
}
