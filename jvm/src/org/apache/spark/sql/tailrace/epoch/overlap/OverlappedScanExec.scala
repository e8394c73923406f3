package org.apache.spark.sql.tailrace.epoch.overlap

import org.apache.spark.TaskContext
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.connector.read.{InputPartition, PartitionReader, PartitionReaderFactory, Scan}
import org.apache.spark.sql.connector.read.streaming.{
  MicroBatchStream, Offset, PartitionOffset, SupportsRealTimeMode, SupportsRealTimeRead
}
import org.apache.spark.sql.connector.read.streaming.SupportsRealTimeRead.RecordStatus
import org.apache.spark.sql.execution.datasources.v2.{DataSourceRDD, LowLatencyClock, LowLatencyReaderFactoryWrap}
import org.apache.spark.sql.internal.connector.PartitionOffsetWithIndex
import org.apache.spark.sql.tailrace.epoch.context.{EpochId, Overlap, RunningSource}
import org.apache.spark.sql.tailrace.epoch.drain.DrainableScanExec
import org.apache.spark.sql.tailrace.internals.kafka.KafkaPartition
import org.apache.spark.sql.tailrace.metrics.SourceProbe
import org.apache.spark.sql.tailrace.operators.origin.TakesOverReaders
import org.apache.spark.util.CollectionAccumulator

/**
 * A scan whose readers stay open from epoch to epoch. A task that has read its part hands its reader to the task of the
 * next epoch, which continues at the very next record.
 *
 * @param source the number of the scan
 */
final class OverlappedScanExec(
    output: Seq[Attribute],
    @transient scan: Scan,
    @transient stream: MicroBatchStream,
    @transient start: Offset,
    batchDurationMs: Long,
    @transient overlap: Overlap,
    source: Int)
    extends DrainableScanExec(output, scan, stream, start, batchDurationMs, overlap.id.run, catchUp = None)
    with TakesOverReaders {

  private def follows: Option[RunningSource] = overlap.follows.map(_.sources(source))

  override def takesOver: Boolean = overlap.follows.isDefined

  /** An epoch that takes over begins when the one before ends. */
  lazy val endsAtMs: Long = follows.fold(LowLatencyClock.getTimeMillis())(_.endsAtMs) + batchDurationMs

  /** Where the readers really began. */
  val startsAccumulator: CollectionAccumulator[PartitionOffsetWithIndex] =
    session.sparkContext.collectionAccumulator[PartitionOffsetWithIndex]

  // While the epoch before runs, nobody can say where its partitions will end. New ones are left to the next epoch.
  override lazy val inputPartitions: Seq[InputPartition] = follows match {
    case Some(running) => running.partitions
    case None => stream.asInstanceOf[SupportsRealTimeMode].planInputPartitions(start).toSeq
  }

  override protected def sourceReaders: PartitionReaderFactory =
    new OverlappedReaderFactory(stream.createReaderFactory(), overlap.id, source, takesOver, startsAccumulator)

  override lazy val inputRDD: RDD[InternalRow] = {
    val factory = LowLatencyReaderFactoryWrap(readerFactory, endsAtMs, endOffsetsAccumulator)
    val rows = new DataSourceRDD(sparkContext, partitions, factory, supportsColumnar, customMetrics)
    postDriverMetrics(scan.reportDriverMetrics())
    rows
  }

  override def nodeName: String = "OverlappedScan"
  override protected def otherCopyArgs: Seq[AnyRef] = Seq(overlap, Int.box(source))
}

private final class OverlappedReaderFactory(
    factory: PartitionReaderFactory,
    id: EpochId,
    source: Int,
    takesOver: Boolean,
    starts: CollectionAccumulator[PartitionOffsetWithIndex])
    extends PartitionReaderFactory {
  override def createReader(partition: InputPartition): PartitionReader[InternalRow] = {
    val at = KafkaPartition.of(partition).getOrElse(throw new IllegalStateException(s"$partition is not Kafka's"))
    val key = HandOverKey.Reader(source, at.topic, at.partition)
    val after = HandOvers.of(id)
    after.foreach(_.refuseRetry(key))
    val open: () => AnyRef =
      if (takesOver) {
        // Looked up now: it is gone when the epoch before is forgotten.
        val before = TakenOver.from(id)
        () => before.take(key, TakenOver.cancellationOfThisTask())
      } else {
        () => factory.createReader(partition)
      }
    new OverlappedReader(open, takesOver, key, after, starts)
  }
}

private object TakenOver {
  /** The hand-over of the epoch before. */
  def from(id: EpochId): HandOver = HandOvers.of(id.before).getOrElse(
    throw new IllegalStateException(s"epoch ${id.epoch} has nothing to take over: the run has ended"))

  def cancellationOfThisTask(): () => Unit = {
    val task = TaskContext.get()
    () => if (task.isInterrupted()) task.killTaskIfInterrupted()
  }
}

/**
 * Opens its reader at the first use: one that takes over waits for it there. `getOffset` is asked exactly once by
 * Spark, when the epoch is over for this partition and every row has gone down the plan.
 */
private final class OverlappedReader(
    open: () => AnyRef,
    takesOver: Boolean,
    key: HandOverKey,
    after: Option[HandOver],
    starts: CollectionAccumulator[PartitionOffsetWithIndex])
    extends SupportsRealTimeRead[InternalRow] {
  private var opened: SupportsRealTimeRead[InternalRow] = _
  private var isLeft = false

  private def reader: SupportsRealTimeRead[InternalRow] = {
    if (opened == null) {
      opened = open().asInstanceOf[SupportsRealTimeRead[InternalRow]]
      if (takesOver) {
        starts.add(new PartitionOffsetWithIndex(TaskContext.getPartitionId(), opened.getOffset))
        SourceProbe.tookOver()
      }
    }
    opened
  }

  override def nextWithTimeout(startedAt: java.lang.Long, timeoutMs: java.lang.Long): RecordStatus =
    reader.nextWithTimeout(startedAt, timeoutMs)

  override def getOffset(): PartitionOffset = {
    val offset = reader.getOffset
    if (!isLeft) {
      isLeft = after.exists(_.leave(key, opened))
    }
    offset
  }

  override def next(): Boolean = reader.next()
  override def get(): InternalRow = opened.get()
  override def close(): Unit = if (opened != null && !isLeft) opened.close()
}
