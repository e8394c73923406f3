package org.apache.spark.sql.tailrace.plan

import org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.streaming.{InternalOutputModes, WriteToStreamStatement}
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.streaming.ProcessingTimeTrigger
import org.apache.spark.sql.streaming.OutputMode

/** Spark's Real-Time Mode admits the output mode `update` alone, an outer join `append` alone, and session windows not `update`. */
object OutputModes {

  /**
   * Whether a query with a join of two streams or a session window never changes a row that it has passed on, if it is written with
   * `append`. Without one of the two, Spark's `update` means the same as `append`, or `append` cannot be had.
   */
  def mayAppend(query: LogicalPlan): Boolean =
    (StreamJoins.in(query).nonEmpty || SessionWindows.in(query).nonEmpty) && !query.exists {
      case aggregate: Aggregate => aggregate.isStreaming && !SessionWindows.isOne(aggregate)
      case node @ (_: Distinct | _: TransformWithState | _: TransformWithStateInPySpark) => node.isStreaming
      case _ => false
    }

  private val InRealTime = TreeNodeTag[Unit]("tailrace.realTime")

  /** Whether the query runs in Real-Time Mode, though its statement has been handed on with another trigger. */
  def isInRealTime(statement: WriteToStreamStatement): Boolean = statement.getTagValue(InRealTime).isDefined

  /** The mode in which the query can be planned, if it can be at all. */
  def plannable(query: LogicalPlan): OutputMode =
    if (StreamJoins.in(query).nonEmpty && mayAppend(query)) OutputMode.Append() else OutputMode.Update()

  /**
   * The statement as Spark admits it. One with `append` goes on as one of another trigger, which is not looked at again: the
   * query is run with the one that it was started with.
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
