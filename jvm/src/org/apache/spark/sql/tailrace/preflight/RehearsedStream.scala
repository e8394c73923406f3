package org.apache.spark.sql.tailrace.preflight

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.read.{InputPartition, PartitionReader, PartitionReaderFactory, Scan}
import org.apache.spark.sql.connector.read.streaming.{MicroBatchStream, Offset, PartitionOffset, SupportsRealTimeMode}
import org.apache.spark.sql.tailrace.epoch.RehearsedSource
import org.apache.spark.sql.types.StructType

/**
 * Replaces a source while its query is planned. It has the same number of partitions, and is never read.
 *
 * @param number distinguishes it from another source with the same name
 */
private[preflight] final case class RehearsedStream(source: String, number: Int, partitions: Int)
    extends MicroBatchStream
    with SupportsRealTimeMode
    with RehearsedSource {

  override def planInputPartitions(start: Offset): Array[InputPartition] =
    Array.fill(partitions)(RehearsedPartition)

  override def planInputPartitions(start: Offset, end: Offset): Array[InputPartition] = planInputPartitions(start)

  override def initialOffset(): Offset = RehearsedOffset

  override def latestOffset(): Offset = RehearsedOffset

  override def deserializeOffset(json: String): Offset = RehearsedOffset

  override def mergeOffsets(offsets: Array[PartitionOffset]): Offset = RehearsedOffset

  override def createReaderFactory(): PartitionReaderFactory = NeverReads

  override def commit(end: Offset): Unit = {}

  override def stop(): Unit = {}

  override def toString: String = source
}

private[preflight] final case class RehearsedScan(override val readSchema: StructType, override val description: String)
    extends Scan

private case object RehearsedPartition extends InputPartition

// The planner asks whether it reads columns or rows.
private case object NeverReads extends PartitionReaderFactory {
  override def createReader(partition: InputPartition): PartitionReader[InternalRow] =
    throw new UnsupportedOperationException("a query that is only planned reads nothing")
}

private[preflight] case object RehearsedOffset extends Offset {
  override def json(): String = "{}"
}
