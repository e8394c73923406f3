package org.apache.spark.sql.tailrace.preflight

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

import tailrace.TailraceException

/** The refusal of a stateful operator below a union. */
private[preflight] object StateBeforeUnion {
  private val Code = "TAILRACE_STATE_BEFORE_UNION"
  private val Problem =
    "one side of the union keeps state (an aggregation, dropDuplicates, a join, transformWithState); Spark's " +
      "Real-Time Mode allows that only behind the union."
  private val Fix = "move the union before the stateful operation, or write the two sides with two queries."

  def refusalOf(node: LogicalPlan): PluginRefusal = PluginRefusal(Code, "union", Problem, Fix, SourceLines.of(node))

  def error: TailraceException = new TailraceException(Code, Problem, Fix)
}
