package org.apache.spark.sql.tailrace.metrics

import org.apache.spark.sql.tailrace.origin.{CurrentRow, SourcePartition}

/** Times the rows of a task when they are handed to the sink and, if the sink reports it, acknowledged. */
final class SinkProbe(task: TaskIdentity, current: CurrentRow, stage: Int, behindShuffle: Boolean) {
  import SinkProbe._

  private val byPartition = new Array[PartitionSeries](math.min(current.partitions.length, MaxPartitions) + 1)
  private val within = if (behindShuffle) task.ofStage(Figure.Stage, stage) else null
  private val calls = task.ofStage(Figure.Sink, stage)
  // Only the task's thread writes these; it does no harm if the reporter sees a figure a moment late.
  private var rows = 0L
  private var reportedRows = 0L

  /** The row is about to be handed over; null if its origin is unknown. */
  def hands(now: Long): PartitionSeries = {
    val series = if (current.partitionIndex < 0) null else seriesOf(current.partitionIndex)
    if (series != null) {
      series.processing.record(now - current.readAt, current.weight)
      if (within != null) {
        within.record(now - current.enteredAt, current.weight)
      }
    }
    series
  }

  def called(micros: Long, weight: Int): Unit = calls.record(micros, weight)

  def delivered(series: PartitionSeries, recordedAt: Long, now: Long, weight: Int): Unit =
    if (series != null && recordedAt >= 0) {
      series.endToEnd.record(now - recordedAt, weight)
    }

  /** For a sink that reports acknowledgements. */
  def acknowledgements(): Series = task.ofStage(Figure.Acknowledgement, stage)

  /** One more row was handed over, timed or not. */
  def counted(): Unit = rows += 1

  /** The rows since the last call. */
  private[metrics] def take(): Option[RowsWritten] = {
    val now = rows
    val since = now - reportedRows
    reportedRows = now
    Option.when(since > 0)(RowsWritten(task.run, since))
  }

  private[metrics] def isClosed: Boolean = calls.isClosed

  /** The task's end-to-end latencies over all partitions. */
  def foreachEndToEnd(use: (Int, Long) => Unit): Unit = byPartition.filter(_ != null).foreach(_.endToEnd.foreach(use))

  private def seriesOf(partition: Int): PartitionSeries = {
    val index = math.min(partition, byPartition.length - 1)
    if (byPartition(index) == null) {
      val known = if (partition < MaxPartitions) current.partitions.get(partition).getOrElse(Others) else Others
      byPartition(index) = new PartitionSeries(
        task.ofPartition(Figure.Processing, stage, known),
        task.ofPartition(Figure.EndToEnd, stage, known))
    }
    byPartition(index)
  }
}

private[metrics] final class PartitionSeries(val processing: Series, val endToEnd: Series)

object SinkProbe {
  // Behind a shuffle every task sees rows of every partition; this bounds its memory.
  private val MaxPartitions = 256
  private val Others = SourcePartition(-1, "others", -1)

  def ofThisTask(stage: Int): SinkProbe = ExecutorFigures.open(
    new SinkProbe(TaskIdentity.ofThisTask(), CurrentRow.ofThisTask(), stage, behindShuffle = stage > 0))
}
