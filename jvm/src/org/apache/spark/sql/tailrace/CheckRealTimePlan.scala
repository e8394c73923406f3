package org.apache.spark.sql.tailrace

import org.apache.spark.sql.catalyst.plans.physical.RangePartitioning
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.{ColumnarRule, SparkPlan}
import org.apache.spark.sql.execution.datasources.v2.RealTimeStreamScanExec
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec

import tailrace.TailraceException
import tailrace.support.{Operators, Support, Unsupported}

/** Refuses a real-time plan that contains anything outside the support registry, with every reason at once. */
object CheckRealTimePlan extends Rule[SparkPlan] {

  object AsColumnarRule extends ColumnarRule {
    override def preColumnarTransitions: Rule[SparkPlan] = CheckRealTimePlan
    // Once more at the end: another extension's rules may have replaced operators in between.
    override def postColumnarTransitions: Rule[SparkPlan] = CheckRealTimePlan
  }

  override def apply(plan: SparkPlan): SparkPlan = {
    val refused = onTheStreamingPath(plan).map(supportOf).distinct.flatMap { support =>
      support.level match {
        case Unsupported(reason, remedy) => Some((support.name, reason, remedy))
        case _ => None
      }
    }.distinct
    if (refused.nonEmpty) {
      throw new TailraceException(
        "TAILRACE_UNSUPPORTED_OPERATOR",
        refused
          .map { case (name, reason, _) => s"$name cannot run in Real-Time Mode: $reason" }
          .mkString("\n"),
        refused.map { case (name, _, remedy) => s"$name: $remedy" }.mkString("\n     "))
    }
    plan
  }

  /** The nodes that rows of the stream pass through; the static side of a join may do as it likes. */
  private def onTheStreamingPath(plan: SparkPlan): Seq[SparkPlan] = plan.collect {
    case node if !node.isInstanceOf[RealTimeStreamScanExec] && reads(node) => node
  }

  private def reads(node: SparkPlan): Boolean = node.exists(_.isInstanceOf[RealTimeStreamScanExec])

  private def supportOf(node: SparkPlan): Support = node match {
    case exchange: ShuffleExchangeExec if exchange.outputPartitioning.isInstanceOf[RangePartitioning] =>
      Operators.RangeRepartition
    case _ => Operators.of(node.getClass.getName, node.nodeName)
  }
}
