package org.apache.spark.sql.tailrace.testing

import java.util.{EnumSet, List => JList, Set => JSet}
import java.util.concurrent.{ConcurrentHashMap, CopyOnWriteArrayList}

import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.{CatalystTypeConverters, InternalRow}
import org.apache.spark.sql.connector.catalog.{SupportsWrite, Table, TableCapability}
import org.apache.spark.sql.connector.write.{
  DataWriter, LogicalWriteInfo, PhysicalWriteInfo, Write, WriteBuilder, WriterCommitMessage
}
import org.apache.spark.sql.connector.write.streaming.{StreamingDataWriterFactory, StreamingWrite}
import org.apache.spark.sql.internal.connector.SupportsStreamingUpdateAsAppend
import org.apache.spark.sql.types.StructType

/** A sink whose rows the test sees as soon as they are written. Tasks run in the test's own JVM. */
final class CollectedRows(id: String) extends Table with SupportsWrite {
  override def name(): String = "tailrace.testing"
  override def schema(): StructType = new StructType
  override def capabilities(): JSet[TableCapability] =
    EnumSet.of(TableCapability.STREAMING_WRITE, TableCapability.ACCEPT_ANY_SCHEMA)

  override def newWriteBuilder(info: LogicalWriteInfo): WriteBuilder =
    new WriteBuilder with SupportsStreamingUpdateAsAppend {
      override def build(): Write = new Write {
        override def toStreaming: StreamingWrite = new Collecting(id, info.schema())
      }
    }
}

object CollectedRows {
  private val collected = new ConcurrentHashMap[String, CopyOnWriteArrayList[Row]]

  def of(id: String): JList[Row] = collected.getOrDefault(id, new CopyOnWriteArrayList[Row])

  def forget(id: String): Unit = collected.remove(id)

  private[testing] def add(id: String, row: Row): Unit =
    collected.computeIfAbsent(id, _ => new CopyOnWriteArrayList[Row]).add(row)
}

private final class Collecting(id: String, schema: StructType) extends StreamingWrite {
  override def createStreamingWriterFactory(info: PhysicalWriteInfo): StreamingDataWriterFactory =
    new CollectingFactory(id, schema)

  override def useCommitCoordinator(): Boolean = false
  override def commit(epochId: Long, messages: Array[WriterCommitMessage]): Unit = ()
  override def abort(epochId: Long, messages: Array[WriterCommitMessage]): Unit = ()
}

private final class CollectingFactory(id: String, schema: StructType) extends StreamingDataWriterFactory {
  override def createWriter(partitionId: Int, taskId: Long, epochId: Long): DataWriter[InternalRow] =
    new DataWriter[InternalRow] {
      private val convert = CatalystTypeConverters.createToScalaConverter(schema)

      override def write(row: InternalRow): Unit = CollectedRows.add(id, convert(row).asInstanceOf[Row])
      override def commit(): WriterCommitMessage = NothingToTell
      override def abort(): Unit = ()
      override def close(): Unit = ()
    }
}

private object NothingToTell extends WriterCommitMessage
