package org.apache.spark.sql.tailrace.operators.python

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet}
import org.apache.spark.sql.catalyst.plans.logical.{BinaryNode, LogicalPlan, TransformWithStateInPySpark}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy}
import org.apache.spark.sql.execution.datasources.v2.StreamingDataSourceV2ScanRelation
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.tailrace.operators.state.IntraEpochWatermark

/**
 * Replaces Spark's own node while a real-time query is planned. Spark's strategy for its node runs before all others
 * and would plan an operator that sorts the whole epoch; it ignores this node.
 */
case class RealTimeTransformWithState(operator: TransformWithStateInPySpark) extends BinaryNode {
  override def left: LogicalPlan = operator.child
  override def right: LogicalPlan = operator.initialState
  override def output: Seq[Attribute] = operator.output
  override def producedAttributes: AttributeSet = operator.producedAttributes
  override lazy val references: AttributeSet = operator.references
  override def isStateful: Boolean = true

  override protected def withNewChildrenInternal(newLeft: LogicalPlan, newRight: LogicalPlan): LogicalPlan =
    copy(operator.copy(child = newLeft, initialState = newRight))
}

/** In a real-time query, hides Python's `transformWithState` from Spark's own strategy. */
object HideTransformWithState extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan.transformUp {
    case operator: TransformWithStateInPySpark if isRealTime(operator.child) => RealTimeTransformWithState(operator)
  }

  private def isRealTime(plan: LogicalPlan): Boolean = plan.exists {
    case scan: StreamingDataSourceV2ScanRelation => scan.relation.realTimeModeDuration.isDefined
    case _ => false
  }
}

/** Plans what [[HideTransformWithState]] hid. Spark fills in the state and the times later, as for its own node. */
object PlanTransformWithState extends SparkStrategy {
  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case RealTimeTransformWithState(operator) =>
      IntraEpochWatermark.checkSetting(SQLConf.get)
      val exec = new RealTimeTransformWithStateExec(
        operator.functionExpr,
        operator.leftAttributes,
        operator.outputAttrs,
        operator.outputMode,
        operator.timeMode,
        stateInfo = None,
        batchTimestampMs = None,
        prevBatchTimestampMs = None,
        eventTimeWatermarkForLateEvents = None,
        eventTimeWatermarkForEviction = None,
        operator.userFacingDataType,
        planLater(operator.child),
        isStreaming = true,
        operator.hasInitialState,
        planLater(operator.initialState),
        operator.rightAttributes,
        operator.initialStateSchema)
      Seq(exec)
    case _ => Nil
  }
}
