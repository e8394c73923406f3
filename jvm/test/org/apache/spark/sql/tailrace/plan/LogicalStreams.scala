package org.apache.spark.sql.tailrace.plan

import org.apache.spark.sql.catalyst.expressions.{
  Alias, Attribute, AttributeReference, EqualTo, Expression, Literal, SessionWindow
}
import org.apache.spark.sql.catalyst.plans.JoinType
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.types._

/** Analyzed queries over streams that are never read. */
object LogicalStreams {
  def stream(): LocalRelation = relation(isStreaming = true)

  def table(): LocalRelation = relation(isStreaming = false)

  private def relation(isStreaming: Boolean): LocalRelation = LocalRelation(
    Seq(AttributeReference("key", StringType)(), AttributeReference("value", LongType)()),
    Nil,
    isStreaming)

  def keyOf(plan: LogicalPlan): Attribute = plan.output.head

  def join(left: LogicalPlan, right: LogicalPlan, kind: JoinType, condition: Option[Expression] = None): Join =
    Join(left, right, kind, condition.orElse(Some(EqualTo(keyOf(left), keyOf(right)))), JoinHint.NONE)

  /** A join on a range only. */
  def unequal(left: LogicalPlan, right: LogicalPlan, kind: JoinType): Join =
    join(left, right, kind, Some(Literal.TrueLiteral))

  def aggregate(child: LogicalPlan): Aggregate = {
    val key = keyOf(child)
    Aggregate(Seq(key), Seq(key), child)
  }

  /** As the analyzer leaves it: the window is a column whose metadata has a mark. */
  def sessions(child: LogicalPlan): Aggregate = {
    val mark = new MetadataBuilder().putBoolean(SessionWindow.marker, value = true).build()
    val window = Alias(Literal(0L), "session_window")(explicitMetadata = Some(mark))
    val projected = Project(child.output :+ window, child)
    val column = projected.output.last
    Aggregate(Seq(keyOf(projected), column), Seq(keyOf(projected), column), projected)
  }
}
