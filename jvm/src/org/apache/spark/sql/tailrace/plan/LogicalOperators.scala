package org.apache.spark.sql.tailrace.plan

import org.apache.spark.sql.catalyst.expressions.{PythonUDTF, SortOrder}
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys
import org.apache.spark.sql.catalyst.plans.logical._

import tailrace.support.{Operators, Support}

/**
 * Finds the operations on the streaming path that cannot run in Real-Time Mode, in the query as the user wrote it.
 * `RefuseUnsupported` finds what depends on the planner's choice, such as how a table is joined.
 */
object LogicalOperators {

  def refused(query: LogicalPlan): Seq[Support] = refusedNodes(query).map(_._1).distinct

  /** Each refused operation with its node. */
  def refusedNodes(query: LogicalPlan): Seq[(Support, LogicalPlan)] =
    query.collect { case node if node.isStreaming => refusal(node).map(_ -> node) }.flatten

  private def refusal(node: LogicalPlan): Option[Support] = node match {
    case join: Join if StreamJoins.isOne(join) => StreamJoins.refusal(join)
    case join: Join if ExtractEquiJoinKeys.unapply(join).isEmpty => Some(Operators.JoinWithoutEqualKeys)
    case _: FlatMapGroupsWithState => Some(Operators.FlatMapGroupsWithState)
    case _: FlatMapGroupsInPandasWithState => Some(Operators.ApplyInPandasWithState)
    case generate: Generate if callsUdtf(generate) => Some(Operators.PythonUdtf)
    case lateral: LateralJoin if lateral.right.plan.exists(callsUdtf) => Some(Operators.PythonUdtf)
    case map: MapInPandas if map.isBarrier || map.profile.isDefined => Some(Operators.MapInPandasBarrier)
    case map: MapInArrow if map.isBarrier || map.profile.isDefined => Some(Operators.MapInArrowBarrier)
    case _: GlobalLimit | _: LocalLimit | _: Offset | _: Tail => Some(Operators.Limit)
    case _: Sort => Some(Operators.Sort)
    case repartition: RepartitionByExpression if repartition.partitionExpressions.exists(_.isInstanceOf[SortOrder]) =>
      Some(Operators.RangeRepartition)
    case _ => None
  }

  private def callsUdtf(node: LogicalPlan): Boolean = node match {
    case generate: Generate => generate.generator.isInstanceOf[PythonUDTF]
    case _ => false
  }
}
