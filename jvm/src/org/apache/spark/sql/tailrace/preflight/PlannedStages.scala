package org.apache.spark.sql.tailrace.preflight

import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, Distinct, LogicalPlan}
import org.apache.spark.sql.catalyst.plans.physical.UnknownPartitioning
import org.apache.spark.sql.execution.{SparkPlan, UnionExec}
import org.apache.spark.sql.execution.datasources.v2.RealTimeStreamScanExec
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperator
import org.apache.spark.sql.tailrace.operators.join.RealTimeJoinExec
import org.apache.spark.sql.tailrace.operators.python.{
  RealTimeEvalPythonExec, RealTimeMapInBatchExec, RealTimeTransformWithStateExec
}
import org.apache.spark.sql.tailrace.plan.Stages

import tailrace.support.Operators

/**
 * The stages of a query that was planned but not started, with the task slots that each will hold.
 *
 * @param query   as the user wrote it
 * @param unknown the sources whose number of partitions is unknown
 */
private[preflight] final class PlannedStages(plan: SparkPlan, query: LogicalPlan, unknown: Set[String]) {
  private val parts = new Stages(plan)

  // Spark plans an aggregation as several operators and forgets where it came from, so they are matched by their order.
  private val aggregations = plan.collect { case node if isAggregation(node) => node }
  private val linesOfAggregations = query.collect {
    case node @ (_: Aggregate | _: Distinct) if node.isStreaming => SourceLines.of(node)
  }

  def stages: Seq[Stage] = parts.tops.map { case (number, top) => describe(number, top) }

  private def describe(number: Int, top: SparkPlan): Stage = {
    val nodes = parts.within(top)
    val sources = nodes.collect { case scan: RealTimeStreamScanExec => scan.stream.toString }
    val tasks = if (sources.exists(unknown.contains)) None else Some(tasksOf(top))
    Stage(
      number,
      inputs = nodes.collect { case exchange: ShuffleExchangeExec => parts.endingIn(exchange) }.sorted,
      sources,
      operators = nodes.reverse.flatMap(describe).distinct,
      tasks)
  }

  private def describe(node: SparkPlan): Option[Operator] = node match {
    case _: RealTimeStreamScanExec | _: ShuffleExchangeExec => None
    case _ =>
      Operators.documentedName(node.getClass.getName).map { name =>
        Operator(
          name,
          isOurs(node),
          isStateful(node),
          Operators.of(node.getClass.getName, node.nodeName).overlaps,
          lineOfAggregation(node).orElse(SourceLines.of(node)))
      }
  }

  private def lineOfAggregation(node: SparkPlan): Option[String] =
    if (aggregations.length == linesOfAggregations.length) {
      aggregations.zip(linesOfAggregations).collectFirst { case (same, line) if same eq node => line }.flatten
    } else {
      None
    }

  private def isOurs(node: SparkPlan): Boolean = node match {
    case _: RealTimeEvalPythonExec | _: RealTimeMapInBatchExec => true
    case _: RealTimeTransformWithStateExec | _: RealTimeJoinExec => true
    case _ => false
  }

  // Spark's aggregation has no state itself: the operators around it, which no user writes, restore and save the state.
  private def isStateful(node: SparkPlan): Boolean = node.isInstanceOf[StatefulOperator] || isAggregation(node)

  private def isAggregation(node: SparkPlan): Boolean =
    Operators.documentedName(node.getClass.getName).contains(Operators.StatefulAggregation)

  private def tasksOf(node: SparkPlan): Int = node match {
    case scan: RealTimeStreamScanExec => scan.inputPartitions.length
    case exchange: ShuffleExchangeExec => exchange.outputPartitioning.numPartitions
    case union: UnionExec if union.outputPartitioning.isInstanceOf[UnknownPartitioning] =>
      inputsOf(union).map(tasksOf).sum
    case _ => inputsOf(node).map(tasksOf).maxOption.getOrElse(0)
  }

  private def inputsOf(node: SparkPlan): Seq[SparkPlan] = node.children.filter(Stages.reads)
}
