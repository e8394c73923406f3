package org.apache.spark.sql.tailrace.plan

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeReference, Expression, SessionWindow}
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, LogicalPlan}
import org.apache.spark.sql.types.MetadataBuilder

import tailrace.TailraceException

/** The session windows of a query, as the user wrote it. */
object SessionWindows {
  def in(query: LogicalPlan): Seq[Aggregate] =
    query.collect { case aggregate: Aggregate if isOne(aggregate) => aggregate }

  def isOne(aggregate: Aggregate): Boolean =
    aggregate.isStreaming && aggregate.groupingExpressions.exists(_.exists(isSession))

  // After analysis, the window is a column whose metadata marks it as a session window.
  private def isSession(expression: Expression): Boolean = expression match {
    case _: SessionWindow => true
    case column: Attribute => column.metadata.contains(SessionWindow.marker)
    case _ => false
  }

  /**
   * Spark has no session windows in output mode `update`, and refuses columns that are marked as such. It plans a
   * session window for any column that has the mark, whatever the mark's value, so the value becomes false.
   */
  def admitted(query: LogicalPlan): LogicalPlan = if (in(query).isEmpty) query
  else query.transform {
    case aggregate: Aggregate if isOne(aggregate) =>
      aggregate.copy(groupingExpressions = aggregate.groupingExpressions.map {
        case column: AttributeReference if isSession(column) =>
          column.withMetadata(new MetadataBuilder().withMetadata(column.metadata).putBoolean(
            SessionWindow.marker,
            value = false).build())
        case other => other
      })
  }

  /** The error for a session status in an aggregation without a session window. */
  def statusWithoutSession(query: LogicalPlan): Option[TailraceException] = query.collectFirst {
    case aggregate: Aggregate
        if !isOne(aggregate) && aggregate.aggregateExpressions.exists(_.exists(_.isInstanceOf[SessionStatus])) =>
      new TailraceException(
        "TAILRACE_STATUS_WITHOUT_SESSION",
        "tailrace.session_status() is used in an aggregation without a session window.",
        "group by session_window(…), or remove session_status().")
  }
}
