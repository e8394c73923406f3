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
 * the records that an older run had read, or those that were waiting when it began.
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
    val targets =
      catchUp.map(new CatchUpTargets(_, LowLatencyClock.getTimeMillis(), output.indexWhere(_.name == "offset")))
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
 * @param waiting    as `until`, but the epoch does not wait for them longer than `waitsMs`
 */
final case class CatchUp(
    until: Map[(String, Int), Long],
    durationMs: Long,
    waiting: Map[(String, Int), Long] = Map.empty,
    waitsMs: Long = 0)

/** Which record of each partition to read before the epoch may end, and when it would end otherwise. */
private[drain] final class CatchUpTargets(catchUp: CatchUp, beganAt: Long, offsetColumn: Int) extends Serializable {
  def of(partition: InputPartition): CatchUpProgress = {
    val at = KafkaPartition.of(partition)
    def last(records: Map[(String, Int), Long]) = at.flatMap(at => records.get((at.topic, at.partition)))
    new CatchUpProgress(
      last(catchUp.until),
      last(catchUp.waiting),
      nextOffset = at.fold(0L)(_.fromOffset),
      endsAt = beganAt + catchUp.durationMs,
      waitsUntil = beganAt + catchUp.waitsMs,
      offsetColumn)
  }
}

/**
 * In a task: how far it is from the records that it has to read.
 *
 * @param target     the last record that an older run had read
 * @param waiting    the last record that was waiting when the epoch began
 * @param nextOffset where the task begins to read
 */
private[drain] final class CatchUpProgress(
    target: Option[Long],
    waiting: Option[Long],
    private var nextOffset: Long,
    val endsAt: Long,
    waitsUntil: Long,
    offsetColumn: Int) {
  private var isBehind = target.exists(_ >= nextOffset)
  private var isWaiting = waiting.exists(_ >= nextOffset)
  private var lastReadAt = LowLatencyClock.getTimeMillis()

  def read(row: InternalRow, now: Long): Unit = if (isBehind || isWaiting) {
    lastReadAt = now
    nextOffset = row.getLong(offsetColumn) + 1
    isBehind = target.exists(_ >= nextOffset)
    isWaiting = waiting.exists(_ >= nextOffset)
  }

  /** The wait is bounded: Kafka may have deleted the record. */
  def isOver(now: Long): Boolean = {
    val patience = lastReadAt + CatchUpProgress.PatienceMs
    // What ends a transaction has an offset of its own, and no reader sees it.
    val isLast = waiting.contains(nextOffset)
    val patienceForLast = if (isLast) lastReadAt + CatchUpProgress.PatienceForLastMs else patience
    (!isBehind || now > math.max(endsAt, patience)) &&
    (!isWaiting || now > math.max(endsAt, math.min(waitsUntil, patienceForLast)))
  }
}

private object CatchUpProgress {
  private val PatienceMs = 10000L
  private val PatienceForLastMs = 3000L
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
