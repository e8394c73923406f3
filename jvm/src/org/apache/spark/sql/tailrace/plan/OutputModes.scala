package org.apache.spark.sql.tailrace.plan

import org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.streaming.{InternalOutputModes, WriteToStreamStatement}
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.streaming.ProcessingTimeTrigger
import org.apache.spark.sql.streaming.OutputMode

/**
 * Works around Spark's rules for output modes: Real-Time Mode admits only `update`, an outer join only `append`, and
 * session windows anything but `update`.
 */
object OutputModes {

  /**
   * True if a query has a join of two streams or a session window and, written with `append`, never changes a row that
   * it has emitted. Without one of the two, Spark's `update` means the same as `append`, or `append` is unavailable.
   */
  def mayAppend(query: LogicalPlan): Boolean =
    (StreamJoins.in(query).nonEmpty || SessionWindows.in(query).nonEmpty) && !query.exists {
      case aggregate: Aggregate => aggregate.isStreaming && !SessionWindows.isOne(aggregate)
      case node @ (_: Distinct | _: TransformWithState | _: TransformWithStateInPySpark) => node.isStreaming
      case _ => false
    }

  private val InRealTime = TreeNodeTag[Unit]("tailrace.realTime")

  /** True if the query runs in Real-Time Mode although its statement now has another trigger. */
  def isInRealTime(statement: WriteToStreamStatement): Boolean = statement.getTagValue(InRealTime).isDefined

  /** The output mode in which the query can be planned, if at all. */
  def plannable(query: LogicalPlan): OutputMode =
    if (StreamJoins.in(query).nonEmpty && mayAppend(query)) OutputMode.Append() else OutputMode.Update()

  /**
   * The statement in a form that Spark admits. A statement with `append` gets another trigger, which only Spark's check
   * sees: the query runs with the trigger that it was started with.
   */
  def admitted(statement: WriteToStreamStatement): WriteToStreamStatement = {
    val query = SessionWindows.admitted(statement.inputQuery)
    if (statement.outputMode == InternalOutputModes.Append && mayAppend(query)) {
      UnsupportedOperationChecker.checkAdditionalRealTimeModeConstraints(query, InternalOutputModes.Update)
      val handedOn = statement.copy(inputQuery = query, trigger = ProcessingTimeTrigger(0))
      handedOn.setTagValue(InRealTime, ())
      handedOn
    } else {
      statement.copy(inputQuery = query)
    }
  }
}
