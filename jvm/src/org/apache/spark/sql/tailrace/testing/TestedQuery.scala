package org.apache.spark.sql.tailrace.testing

import java.util.{List => JList}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.classic.{DataFrame, SparkSession}
import org.apache.spark.sql.execution.streaming.RealTimeTrigger
import org.apache.spark.sql.execution.streaming.runtime.{StreamExecution, StreamingQueryWrapper}
import org.apache.spark.sql.streaming.{OutputMode, StreamingQuery, Trigger}
import org.apache.spark.sql.types.StructType

/** A query under test: it reads the test's rows, follows the test's clock, and its results are collected. */
final class TestedQuery(
    session: SparkSession,
    rows: DataFrame,
    sources: JList[TestSource],
    clock: TestClock,
    checkpoint: String,
    isRealTime: Boolean) {
  private val results = checkpoint
  private val trigger: Trigger =
    if (isRealTime) RealTimeTrigger(TestedQuery.EpochMs) else Trigger.ProcessingTime(TestedQuery.EpochMs)

  val query: StreamingQuery = session.streams.startQuery(
    userSpecifiedName = None,
    userSpecifiedCheckpointLocation = Some(checkpoint),
    df = rows,
    // Asynchronous progress would be written later than a test expects.
    extraOptions = Map("asyncProgressTrackingEnabled" -> "false"),
    sink = new CollectedRows(results),
    outputMode = OutputMode.Update,
    trigger = trigger,
    triggerClock = clock)

  private val execution: StreamExecution = query.asInstanceOf[StreamingQueryWrapper].streamingQuery

  def isRead: Boolean = sources.asScala.forall(_.isRead)

  def isCommitted: Boolean = sources.asScala.forall(_.isCommittedIn(execution.committedOffsets))

  /** The number of the open batch or epoch, or else of the next one. */
  def currentBatch: Long = execution.getLatestExecutionContext().batchId

  def collected: DataFrame = session.createDataFrame(CollectedRows.of(results), StructType(rows.schema.fields))

  def forget(): Unit = CollectedRows.forget(results)
}

object TestedQuery {
  /** So short that the test's clock hardly has to move to end an epoch. */
  val EpochMs = 1L
}
