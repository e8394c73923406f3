package org.apache.spark.sql.tailrace.sink

import java.util.{EnumSet, Map => JMap, Set => JSet}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.connector.catalog.{SupportsWrite, Table, TableCapability, TableProvider}
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.connector.read.streaming.ReportsSinkMetrics
import org.apache.spark.sql.connector.write.{LogicalWriteInfo, Write, WriteBuilder}
import org.apache.spark.sql.connector.write.streaming.StreamingWrite
import org.apache.spark.sql.internal.connector.SupportsStreamingUpdateAsAppend
import org.apache.spark.sql.sources.DataSourceRegister
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import tailrace.TailraceException

/**
 * The table of an [[ExactlyOnceSink]], by which a query is checked before it starts.
 *
 * @param format the name that users write with
 */
abstract class ExactlyOnceTable(val format: String) extends Table with SupportsWrite with ReportsSinkMetrics {
  @volatile private var latest = SinkCounts.none.byName

  /** @param report to be called with the counts of each committed epoch */
  protected def newWrite(info: LogicalWriteInfo, report: Map[String, String] => Unit): StreamingWrite

  // Spark decides by this name whether the offset log of a stateless query may be written in the background.
  override def name(): String = "ForeachSink"
  override def toString: String = format
  override def schema(): StructType = new StructType
  override def capabilities(): JSet[TableCapability] =
    EnumSet.of(TableCapability.STREAMING_WRITE, TableCapability.ACCEPT_ANY_SCHEMA)

  override def newWriteBuilder(info: LogicalWriteInfo): WriteBuilder =
    new WriteBuilder with SupportsStreamingUpdateAsAppend {
      override def build(): Write = new Write {
        override def toStreaming: StreamingWrite = newWrite(info, counts => latest = counts)
      }
    }

  /** Shown in Spark's progress of the epoch. */
  override def metrics(): JMap[String, String] = latest.asJava

  final def needsRealTime: TailraceException = new TailraceException(
    "TAILRACE_SINK_NEEDS_REAL_TIME",
    s"the sink $format can identify rows in Real-Time Mode only.",
    s"start the query with .trigger(realTime=…), or ${ExactlyOnceTable.Otherwise}")
}

object ExactlyOnceTable {
  /** How a query is fixed that no such sink can write. */
  val Otherwise = "write with a sink that may write duplicates after a failure, such as format(\"kafka\")."
}

/** How Spark finds an [[ExactlyOnceTable]] by the name of its format. */
abstract class ExactlyOnceFormat(format: String) extends TableProvider with DataSourceRegister {
  protected def newTable(): ExactlyOnceTable

  override def shortName(): String = format
  override def inferSchema(options: CaseInsensitiveStringMap): StructType = new StructType
  override def supportsExternalMetadata(): Boolean = true
  override def getTable(schema: StructType, partitioning: Array[Transform], properties: JMap[String, String]): Table =
    newTable()
}
