package org.apache.spark.sql.tailrace.internals

import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.streaming.StatefulStreamlineAggregateExec
import org.apache.spark.sql.execution.streaming.operators.stateful.{
  SessionWindowStateStoreSaveExec, StreamingDeduplicateExec, StreamingDeduplicateWithinWatermarkExec, WatermarkSupport
}
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinExec
import org.apache.spark.sql.tailrace.internals.names.{ByName, NamedField}

/**
 * The watermark by which a stateful operator removes state. These operators look at it only when their input is over,
 * so a task can be given it after it has begun.
 */
private[tailrace] object EvictionWatermark extends ByName {
  private val Name = "eventTimeWatermarkForEviction"
  private val ofAggregation = watermarkOf(classOf[StatefulStreamlineAggregateExec])
  private val ofDeduplication = watermarkOf(classOf[StreamingDeduplicateExec])
  private val ofBoundedDeduplication = watermarkOf(classOf[StreamingDeduplicateWithinWatermarkExec])
  private val ofSessions = watermarkOf(classOf[SessionWindowStateStoreSaveExec])

  private def watermarkOf(operator: Class[_]): NamedField[Option[Long]] = field(operator.getName, Name)

  private def fieldOf(operator: SparkPlan): Option[NamedField[Option[Long]]] = operator match {
    case _: StatefulStreamlineAggregateExec => Some(ofAggregation)
    case _: StreamingDeduplicateExec => Some(ofDeduplication)
    case _: StreamingDeduplicateWithinWatermarkExec => Some(ofBoundedDeduplication)
    case _: SessionWindowStateStoreSaveExec => Some(ofSessions)
    case _ => None
  }

  /** A join of two streams asks for it itself. */
  def canBeKnownLate(operator: SparkPlan): Boolean =
    operator.isInstanceOf[StreamingSymmetricHashJoinExec] || canBeSetLate(operator)

  def canBeSetLate(operator: SparkPlan): Boolean = fieldOf(operator).isDefined

  /** On the driver, in the plan of an operator. */
  def of(operator: SparkPlan): Option[Long] = operator match {
    case operator: WatermarkSupport => operator.eventTimeWatermarkForEviction
    case join: StreamingSymmetricHashJoinExec => join.eventTimeWatermarkForEviction
    case _ => None
  }

  /** The watermark by which an operator decides which rows are late. */
  def ofLateRows(operator: SparkPlan): Option[Long] = operator match {
    case operator: WatermarkSupport => operator.eventTimeWatermarkForLateEvents
    case join: StreamingSymmetricHashJoinExec => join.eventTimeWatermarkForLateEvents
    case _ => None
  }

  /** @param operator a task's own copy of it */
  def set(operator: SparkPlan, watermarkMs: Option[Long]): Unit = fieldOf(operator) match {
    case Some(field) => field.set(operator, watermarkMs)
    case None => throw new IllegalStateException(s"${operator.nodeName} has no watermark that can be set late")
  }
}
