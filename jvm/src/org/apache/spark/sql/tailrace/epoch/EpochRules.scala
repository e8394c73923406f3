package org.apache.spark.sql.tailrace.epoch

import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.tailrace.epoch.context.{EpochContext, EpochRule}
import org.apache.spark.sql.tailrace.epoch.rules._

/** The rules that make Spark's plan of an epoch Tailrace's, in the order in which they are applied. */
private[epoch] object EpochRules {

  /** Put Tailrace's operators in the place of Spark's. */
  private val operators: Seq[EpochRule] = Seq(
    ReplacePythonOperators, // Python functions: operators that pass each row on at once.
    ReplaceJoins, // Joins of two streams: an operator that reads both sides at the same time.
    ReplaceSessions, // Session windows: an operator that does row by row what Spark sorts and merges.
    FireTimersWhenIdle // `transformWithState`: timers fire while no row arrives.
  )

  /** Let the plan run as an epoch. In a rehearsal they change nothing. */
  private val execution: Seq[EpochRule] = Seq(
    TrackOrigins, // Carries the origin of each row from its source to the sink, and times the rows.
    ShortenEpoch, // Makes the first epochs of a run short, while the JVM is cold.
    MakeScansDrainable, // Lets scans end before the epoch's time is over, or after it, and hand over their readers.
    OverlapEpochs, // Lets the next epoch begin while the tasks of this one still run.
    FireTimersAfterRows, // Lets timers wait until the records have been read that were waiting for the query.
    RefuseUnsupported // Refuses what only the planner decides, such as the kind of a join.
  )

  def applyAll(plan: SparkPlan, epoch: EpochContext): SparkPlan = fold(operators ++ execution, plan, epoch)

  /** The plan with Tailrace's operators and nothing else, as the sink and the live figures are shown it. */
  def replaceOperators(plan: SparkPlan, epoch: EpochContext): SparkPlan = fold(operators, plan, epoch)

  private def fold(rules: Seq[EpochRule], plan: SparkPlan, epoch: EpochContext): SparkPlan =
    rules.foldLeft(plan)((planned, rule) => rule(planned, epoch))
}
