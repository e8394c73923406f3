package org.apache.spark.sql.tailrace.epoch.overlap

import scala.concurrent.duration.Duration

import org.apache.spark.{FutureAction, SparkContext}
import org.apache.spark.sql.connector.write.WriterCommitMessage
import org.apache.spark.sql.tailrace.epoch.context.{EpochId, RunningEpoch, RunningSource}
import org.apache.spark.sql.tailrace.internals.kafka.KafkaPartition
import org.apache.spark.util.ThreadUtils

/**
 * The running job of an epoch. It holds its plan: Spark would otherwise clean up the plan's accumulators and shuffles,
 * since nobody else knows a plan that was made ahead.
 */
private[overlap] final class EpochJob(val write: OverlappedWriteExec, val tasks: Int) {
  private val messages = new Array[WriterCommitMessage](tasks)
  @volatile private var rows = 0L
  @volatile private var action: FutureAction[Unit] = _

  val id: EpochId = write.overlap.id
  val handOver: HandOver = HandOvers.begin(id)
  val scans: Seq[OverlappedScanExec] = write.collect { case scan: OverlappedScanExec => scan }

  def endsAtMs: Long = scans.map(_.endsAtMs).min

  /** What the next epoch has to know of this one. */
  def asRunning: RunningEpoch = RunningEpoch(scans.map(scan => RunningSource(scan.endsAtMs, scan.inputPartitions)))

  def submitted(submitted: FutureAction[Unit]): Unit = action = submitted

  /** A task has ended. Called by Spark's scheduler. */
  def taskEnded(task: Int, written: Long, message: WriterCommitMessage): Unit = synchronized {
    messages(task) = message
    rows += written
    write.batchWrite.onDataWriterCommit(message)
  }

  def rowsWritten: Long = rows

  /** Throws what the job failed with. */
  def await(): Unit = {
    ThreadUtils.awaitReady(action, Duration.Inf)
    action.value.get.get
  }

  def hasFailed: Boolean = action.value.exists(_.isFailure)

  def commit(): Unit = write.batchWrite.commit(messages)

  def cancel(): Unit = action.cancel()

  def abort(): Unit = write.batchWrite.abort(messages)
}

private[overlap] object EpochJob {
  def partitionsOf(scan: OverlappedScanExec): Set[(String, Int)] =
    scan.inputPartitions.flatMap(KafkaPartition.of).map(at => (at.topic, at.partition)).toSet

  /** How many tasks the application can run at once. */
  def slots(context: SparkContext): Int =
    context.maxNumConcurrentTasks(context.resourceProfileManager.defaultResourceProfile)
}
