package org.apache.spark.sql.tailrace.plan

import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical._

import tailrace.support.{Operators, Support}

/** The joins of two streams in a query, as the user wrote it. */
object StreamJoins {
  def in(query: LogicalPlan): Seq[Join] = query.collect { case join: Join if isOne(join) => join }

  def isOne(join: Join): Boolean = join.left.isStreaming && join.right.isStreaming

  /** The joins that emit rows without a match once no match can come any more. */
  def outer(query: LogicalPlan): Seq[Join] = in(query).filter(join => Outer(join.joinType))

  def refusal(join: Join): Option[Support] =
    if (!Known(join.joinType)) Some(Operators.StreamJoinOfAnotherKind)
    else if (ExtractEquiJoinKeys.unapply(join).isEmpty) Some(Operators.StreamJoinWithoutEqualKeys)
    else None

  /** Stateful operators below a union, where Real-Time Mode allows none, that Spark's own check does not know. */
  def stateSparkDoesNotKnow(union: Union): Seq[LogicalPlan] = union.collect {
    case join: Join if isOne(join) => join
    case node: DeduplicateWithinWatermark if node.isStreaming => node
  }

  private val Outer = Set[JoinType](LeftOuter, RightOuter, FullOuter)
  private val Known = Outer ++ Set(Inner, LeftSemi)
}
