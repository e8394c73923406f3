package org.apache.spark.sql.tailrace.drain

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.connector.metric.CustomTaskMetric
import org.apache.spark.sql.connector.read.{InputPartition, PartitionReader, PartitionReaderFactory, Scan}
import org.apache.spark.sql.connector.read.streaming.{MicroBatchStream, Offset, PartitionOffset, SupportsRealTimeRead}
import org.apache.spark.sql.connector.read.streaming.SupportsRealTimeRead.RecordStatus
import org.apache.spark.sql.execution.datasources.v2.{LowLatencyClock, RealTimeStreamScanExec}
import org.apache.spark.sql.tailrace.latency.TaskIdentity

/**
 * Spark's own scan, whose epoch can be ended early: its readers then say that there are no more rows, as they do when
 * the epoch's time is over, and everything that follows is the usual end of an epoch.
 */
final class DrainableScanExec(
    output: Seq[Attribute],
    @transient scan: Scan,
    @transient stream: MicroBatchStream,
    @transient start: Offset,
    batchDurationMs: Long)
    extends RealTimeStreamScanExec(output, scan, stream, start, batchDurationMs) {
  override lazy val readerFactory: PartitionReaderFactory = new DrainableReaderFactory(stream.createReaderFactory())

  override def nodeName: String = "RealTimeStreamScan"
}

private final class DrainableReaderFactory(factory: PartitionReaderFactory) extends PartitionReaderFactory {
  override def createReader(partition: InputPartition): PartitionReader[InternalRow] =
    factory.createReader(partition) match {
      case reader: SupportsRealTimeRead[InternalRow @unchecked] =>
        new DrainableReader(reader, TaskContext.get().getLocalProperty(TaskIdentity.RunKey))
      // Spark says what is wrong with it.
      case other => other
    }
}

private final class DrainableReader(reader: SupportsRealTimeRead[InternalRow], run: String)
    extends SupportsRealTimeRead[InternalRow] {
  import DrainableReader._

  override def nextWithTimeout(startedAt: java.lang.Long, timeoutMs: java.lang.Long): RecordStatus = {
    val end = startedAt + timeoutMs
    var now = startedAt.longValue
    var status = NoRecord
    // A source cannot be woken up: it is asked to wait for short times only.
    while (!status.hasRecord && now < end && !Drains.isAsked(run)) {
      status = reader.nextWithTimeout(now, math.min(end - now, LongestWaitMs))
      if (!status.hasRecord) {
        now = LowLatencyClock.getTimeMillis()
      }
    }
    status
  }

  override def next(): Boolean = reader.next()
  override def get(): InternalRow = reader.get()
  override def getOffset(): PartitionOffset = reader.getOffset
  override def currentMetricsValues(): Array[CustomTaskMetric] = reader.currentMetricsValues()
  override def close(): Unit = reader.close()
}

private object DrainableReader {
  private val LongestWaitMs = 50L
  private val NoRecord = RecordStatus.newStatusWithoutArrivalTime(false)
}
