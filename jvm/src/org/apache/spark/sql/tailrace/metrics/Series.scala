package org.apache.spark.sql.tailrace.metrics

import scala.collection.mutable

import org.apache.spark.TaskContext
import org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution
import org.apache.spark.sql.tailrace.origin.SourcePartition

/** What is timed. */
object Figure {
  /** From a record's timestamp until it is read. */
  val SourceQueue = "source_queue"

  /** From the read until the row is handed to the sink. */
  val Processing = "processing"

  /** From a record's timestamp until the sink acknowledges it, or receives it if the sink does not acknowledge. */
  val EndToEnd = "end_to_end"

  /** A row's time in a stage. */
  val Stage = "stage"

  /** From the previous stage into this one. */
  val Shuffle = "shuffle"

  /** The time of a batch of rows in the Python worker. */
  val Python = "python"

  /** The call that hands a row to the sink. */
  val Sink = "sink"

  /** From that call until the sink's acknowledgement. */
  val Acknowledgement = "acknowledgement"
}

/**
 * What a series of durations measures. `topic` and `partition` name a source partition; without a topic, the partition
 * is one of the stage's tasks.
 */
final case class SeriesKey(run: String, figure: String, stage: Int, topic: String, partition: Int)

/** One task's durations of one kind. The task records them, the reporter takes the new ones. */
final class Series(val key: SeriesKey) {
  private val counts = new Counts
  private val reported = mutable.LongMap.empty[Long]
  @volatile private var done = false

  def record(micros: Long, times: Int): Unit = counts.record(micros, times)

  /** Everything so far, as bucket and count. */
  def foreach(use: (Int, Long) => Unit): Unit = counts.foreach(use)

  /** The new counts since the last call. */
  private[metrics] def foreachNew(use: (Int, Long) => Unit): Unit = counts.foreach { (bucket, count) =>
    val since = count - reported.getOrElse(bucket, 0L)
    if (since > 0) {
      reported.update(bucket, count)
      use(bucket, since)
    }
  }

  private[metrics] def close(): Unit = done = true

  private[metrics] def isClosed: Boolean = done
}

/** The run, epoch and partition of the task that runs in this thread. */
final case class TaskIdentity(run: String, epoch: Long, partition: Int) {

  def ofStage(figure: String, stage: Int): Series =
    ExecutorFigures.open(new Series(SeriesKey(run, figure, stage, "", partition)))

  def ofPartition(figure: String, stage: Int, partition: SourcePartition): Series =
    ExecutorFigures.open(new Series(SeriesKey(run, figure, stage, partition.topic, partition.partition)))
}

object TaskIdentity {
  // StreamExecution runs its jobs in a group named after the run.
  private[tailrace] val RunKey = "spark.jobGroup.id"

  def ofThisTask(): TaskIdentity = {
    val task = TaskContext.get()
    val epoch = Option(task.getLocalProperty(MicroBatchExecution.BATCH_ID_KEY)).fold(-1L)(_.toLong)
    TaskIdentity(String.valueOf(task.getLocalProperty(RunKey)), epoch, task.partitionId())
  }
}
