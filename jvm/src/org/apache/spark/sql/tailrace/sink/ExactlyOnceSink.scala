package org.apache.spark.sql.tailrace.sink

import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.datasources.v2.WriteToDataSourceV2Exec
import org.apache.spark.sql.execution.streaming.sources.MicroBatchWrite
import org.apache.spark.sql.tailrace.errors.ErrorPolicy
import org.apache.spark.sql.tailrace.origin.{ReplayedRows, SourcePartition}

/**
 * A sink that writes each row once, although Spark computes the open epoch again after a failure. Implemented by the
 * `StreamingWrite` of the sink, of which Spark makes a new one for each epoch.
 */
trait ExactlyOnceSink {
  /**
   * Called once per epoch on the driver, in the query's own thread, before the first task starts. In the first epoch of
   * a run the sink claims its output for the run, keeps older runs from writing any more, and reads back what they have
   * written since the last commit. May block, and throws if the query's rows cannot be written once.
   */
  def prepare(epoch: SinkEpoch): PreparedSink

  /**
   * Why the epoch after the one that was prepared must not begin before that one has been committed. None if it may:
   * then [[prepareAhead]] is called for it, on another instance.
   */
  def reasonAgainstOverlap: Option[String]

  /**
   * In the place of [[prepare]], for an epoch that is planned while the one before is running. Called before any task
   * of it starts, not in the query's own thread.
   */
  def prepareAhead(epoch: SinkEpoch): Unit

  /**
   * The run is over, and nothing has to be remembered of it. Not necessarily called on the instance that was prepared
   * last.
   */
  def runEnded(run: String): Unit
}

/**
 * The epoch that a sink is about to write.
 *
 * @param plan with the operators that will run
 */
final case class SinkEpoch(plan: SparkPlan, run: String, epoch: Long, onError: ErrorPolicy)

/**
 * What a sink has found in its output.
 *
 * @param replayed    rows of the epoch that were written before, if their order must be restored
 * @param replayUntil by source partition, the last record of which a row was written before
 */
final case class PreparedSink(replayed: Option[ReplayedRows], replayUntil: Map[SourcePartition, Long])

object PreparedSink {
  val NoRecords: Map[SourcePartition, Long] = Map.empty
}

object ExactlyOnceSink {
  /** The sink of a plan, if it is one of these. */
  def in(plan: SparkPlan): Option[ExactlyOnceSink] = plan.collectFirst {
    case write: WriteToDataSourceV2Exec => write.batchWrite
  }.collect { case epoch: MicroBatchWrite => epoch.writeSupport }.collect { case sink: ExactlyOnceSink => sink }
}
