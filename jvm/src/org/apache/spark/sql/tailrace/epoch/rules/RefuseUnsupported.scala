package org.apache.spark.sql.tailrace.epoch.rules

import org.apache.spark.sql.catalyst.plans.physical.{RangePartitioning, UnknownPartitioning}
import org.apache.spark.sql.execution.{SparkPlan, UnionExec}
import org.apache.spark.sql.execution.datasources.v2.RealTimeStreamScanExec
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec
import org.apache.spark.sql.tailrace.epoch.context.{EpochContext, EpochRule}
import org.apache.spark.sql.tailrace.plan.Refusal

import tailrace.support.{Operators, Support}

/** Refuses a real-time plan that contains anything outside the support registry, with every reason at once. */
object RefuseUnsupported extends EpochRule {
  override def apply(plan: SparkPlan, epoch: EpochContext): SparkPlan =
    if (epoch.refusesUnsupported) refuseOrPass(plan) else plan

  /** The plan itself, if everything in it is supported. */
  def refuseOrPass(plan: SparkPlan): SparkPlan = {
    Refusal.of(supports(plan).map(_._1)).foreach(throw _)
    plan
  }

  /** What the registry says of each operator, and where it is. */
  def supports(plan: SparkPlan): Seq[(Support, SparkPlan)] =
    onTheStreamingPath(plan).map(node => supportOf(node) -> node)

  /** The nodes that rows of the stream pass through; the static side of a join may do as it likes. */
  private def onTheStreamingPath(plan: SparkPlan): Seq[SparkPlan] = plan.collect {
    case node if !node.isInstanceOf[RealTimeStreamScanExec] && reads(node) => node
  }

  private def reads(node: SparkPlan): Boolean = node.exists(_.isInstanceOf[RealTimeStreamScanExec])

  private def supportOf(node: SparkPlan): Support = node match {
    case exchange: ShuffleExchangeExec if exchange.outputPartitioning.isInstanceOf[RangePartitioning] =>
      Operators.RangeRepartition
    case union: UnionExec if !union.outputPartitioning.isInstanceOf[UnknownPartitioning] => Operators.UnionInTurn
    case _ => Operators.of(node.getClass.getName, node.nodeName)
  }
}
