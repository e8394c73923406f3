package org.apache.spark.sql.tailrace.epoch.drain

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.connector.metric.CustomTaskMetric
import org.apache.spark.sql.connector.read.{InputPartition, PartitionReader, PartitionReaderFactory, Scan}
import org.apache.spark.sql.connector.read.streaming.{MicroBatchStream, Offset, PartitionOffset, SupportsRealTimeRead}
import org.apache.spark.sql.connector.read.streaming.SupportsRealTimeRead.RecordStatus
import org.apache.spark.sql.execution.datasources.v2.{LowLatencyClock, RealTimeStreamScanExec}
import org.apache.spark.sql.tailrace.internals.kafka.KafkaPartition

/**
 * Spark's own scan, whose epoch can be drained: its readers then report that there are no more rows, as they do when
 * the epoch's time is over, and the epoch ends as usual. The epoch can also be made to last longer, until it has read
 * the records that an older run had read.
 *
 * @param run     whose drain ends it
 * @param catchUp what to read before the epoch may end; none if only time decides
 */
class DrainableScanExec(
    output: Seq[Attribute],
    @transient scan: Scan,
    @transient stream: MicroBatchStream,
    @transient start: Offset,
    batchDurationMs: Long,
    run: String,
    catchUp: Option[CatchUp])
    extends RealTimeStreamScanExec(output, scan, stream, start, batchDurationMs) {

  override lazy val readerFactory: PartitionReaderFactory = {
    val targets = catchUp.map { case CatchUp(until, durationMs) =>
      new CatchUpTargets(until, LowLatencyClock.getTimeMillis() + durationMs, output.indexWhere(_.name == "offset"))
    }
    new DrainableReaderFactory(sourceReaders, run, targets)
  }

  /** The readers that are made drainable. */
  protected def sourceReaders: PartitionReaderFactory = stream.createReaderFactory()

  override def nodeName: String = "RealTimeStreamScan"
  override protected def otherCopyArgs: Seq[AnyRef] = Seq(run, catchUp)
}

/**
 * @param until      by topic and partition of this source, the last record to read before the epoch may end
 * @param durationMs how long the epoch lasts if there are no such records, or if they have been read by then
 */
final case class CatchUp(until: Map[(String, Int), Long], durationMs: Long)

/** Which record of each partition to read before the epoch may end, and when it would end otherwise. */
private final class CatchUpTargets(until: Map[(String, Int), Long], endsAt: Long, offsetColumn: Int)
    extends Serializable {
  def of(partition: InputPartition): CatchUpProgress = {
    val target =
      KafkaPartition.of(partition).flatMap(at => until.get((at.topic, at.partition)).filter(_ >= at.fromOffset))
    new CatchUpProgress(target.getOrElse(CatchUpProgress.NoTarget), endsAt, offsetColumn)
  }
}

/** In a task: how far it is from the record that it has to read. */
private final class CatchUpProgress(target: Long, val endsAt: Long, offsetColumn: Int) {
  private var isBehind = target != CatchUpProgress.NoTarget
  private var lastReadAt = LowLatencyClock.getTimeMillis()

  def read(row: InternalRow, now: Long): Unit = if (isBehind) {
    lastReadAt = now
    isBehind = row.getLong(offsetColumn) < target
  }

  /** The wait is bounded: Kafka may have deleted the record. */
  def isOver(now: Long): Boolean = !isBehind || now > math.max(endsAt, lastReadAt + CatchUpProgress.PatienceMs)
}

private object CatchUpProgress {
  val NoTarget: Long = -1L
  private val PatienceMs = 10000L
}

private final class DrainableReaderFactory(
    factory: PartitionReaderFactory,
    run: String,
    targets: Option[CatchUpTargets])
    extends PartitionReaderFactory {
  override def createReader(partition: InputPartition): PartitionReader[InternalRow] =
    factory.createReader(partition) match {
      case reader: SupportsRealTimeRead[InternalRow @unchecked] =>
        new DrainableReader(reader, run, targets.map(_.of(partition)).orNull)
      // Spark says what is wrong with it.
      case other => other
    }
}

private final class DrainableReader(reader: SupportsRealTimeRead[InternalRow], run: String, catchUp: CatchUpProgress)
    extends SupportsRealTimeRead[InternalRow] {
  import DrainableReader._

  override def nextWithTimeout(startedAt: java.lang.Long, timeoutMs: java.lang.Long): RecordStatus = {
    val end = if (catchUp == null) startedAt + timeoutMs else catchUp.endsAt
    var now = startedAt.longValue
    var status = NoRecord
    // A source cannot be woken up: it is asked to wait for short times only.
    while (!status.hasRecord && !isOver(now, end)) {
      status = reader.nextWithTimeout(now, math.max(ShortestWaitMs, math.min(end - now, LongestWaitMs)))
      if (!status.hasRecord) {
        now = LowLatencyClock.getTimeMillis()
      } else if (catchUp != null) {
        catchUp.read(reader.get(), now)
      }
    }
    status
  }

  private def isOver(now: Long, end: Long): Boolean =
    (now >= end || Drains.isAsked(run)) && (catchUp == null || catchUp.isOver(now))

  override def next(): Boolean = reader.next()
  override def get(): InternalRow = reader.get()
  override def getOffset(): PartitionOffset = reader.getOffset
  override def currentMetricsValues(): Array[CustomTaskMetric] = reader.currentMetricsValues()
  override def close(): Unit = reader.close()
}

private object DrainableReader {
  private val ShortestWaitMs = 1L
  private val LongestWaitMs = 50L
  private val NoRecord = RecordStatus.newStatusWithoutArrivalTime(false)
}
