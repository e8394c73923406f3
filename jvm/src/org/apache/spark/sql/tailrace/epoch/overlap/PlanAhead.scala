package org.apache.spark.sql.tailrace.epoch.overlap

import java.util.UUID

import scala.collection.mutable

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.SQLExecution
import org.apache.spark.sql.execution.streaming.runtime.{
  IncrementalExecution, MicroBatchExecution, StreamExecution, WatermarkPropagator
}
import org.apache.spark.sql.execution.streaming.sources.WriteToMicroBatchDataSource
import org.apache.spark.sql.tailrace.epoch.context.RunningEpoch

/**
 * Plans the next epoch as Spark will, from what Spark's plan of the running one says. What is not known yet, such as
 * the offsets at which the epoch begins, is not part of the plan: the tasks take it over from those of the running one.
 */
private[epoch] object PlanAhead {
  private val following = new ThreadLocal[RunningEpoch]

  /** In a thread that plans ahead: the epoch that is running. */
  def follows: Option[RunningEpoch] = Option(following.get)

  /** In a thread that has inherited the local properties of the query's own. */
  private[overlap] def apply(session: SparkSession, running: EpochJob): OverlappedWriteExec = {
    val query = UUID.fromString(session.sparkContext.getLocalProperty(StreamExecution.QUERY_ID_KEY))
    val present = session.sharedState.activeStreamingQueries.get(query).lastExecution
    require(present.currentBatchId == running.id.epoch, s"the query is already in epoch ${present.currentBatchId}")
    following.set(running.asRunning)
    try session.withActive(planned(session, present))
    finally following.remove()
  }

  private def planned(session: SparkSession, present: IncrementalExecution): OverlappedWriteExec = {
    val epoch = present.currentBatchId + 1
    val context = session.sparkContext
    context.setLocalProperty(MicroBatchExecution.BATCH_ID_KEY, epoch.toString)
    // Otherwise Spark's UI takes the job for one of the running epoch.
    context.setLocalProperty(SQLExecution.EXECUTION_ID_KEY, null)
    context.setLocalProperty(SQLExecution.EXECUTION_ROOT_ID_KEY, null)
    val next = new IncrementalExecution(
      session,
      present.logical match {
        case sink: WriteToMicroBatchDataSource => sink.withNewBatchId(epoch)
        case other => throw new IllegalStateException(s"${other.nodeName} is not a write")
      },
      present.outputMode,
      present.checkpointLocation,
      present.queryId,
      present.runId,
      epoch,
      prevOffsetSeqMetadata = Some(present.offsetSeqMetadata),
      offsetSeqMetadata = present.offsetSeqMetadata,
      // Spark's own keeps one watermark for each epoch, and has not seen this one yet. Here it is that of the running
      // epoch, which decides what is late. LateWatermark gives the tasks the one by which state is removed.
      WatermarkPropagator(session.sessionState.conf),
      isFirstBatch = false,
      mutable.Map.empty,
      present.stateSchemaMetadatas,
      isRealTimeMode = true)
    next.executedPlan match {
      case write: OverlappedWriteExec => write
      case other => throw new IllegalStateException(s"${other.nodeName} does not overlap")
    }
  }
}
