package org.apache.spark.sql.tailrace.sink.postgresql

import java.util.{EnumSet, Map => JMap, Set => JSet}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.connector.catalog.{SupportsWrite, Table, TableCapability, TableProvider}
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.connector.read.streaming.ReportsSinkMetrics
import org.apache.spark.sql.connector.write.{LogicalWriteInfo, Write, WriteBuilder}
import org.apache.spark.sql.connector.write.streaming.StreamingWrite
import org.apache.spark.sql.internal.connector.SupportsStreamingUpdateAsAppend
import org.apache.spark.sql.sources.DataSourceRegister
import org.apache.spark.sql.tailrace.sink.ExactlyOnceTable
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** `format("tailrace-postgresql")`: appends or upserts rows, each exactly once. */
class TailracePostgresql extends TableProvider with DataSourceRegister {
  override def shortName(): String = TailracePostgresql.Format
  override def inferSchema(options: CaseInsensitiveStringMap): StructType = new StructType
  override def supportsExternalMetadata(): Boolean = true
  override def getTable(schema: StructType, partitioning: Array[Transform], properties: JMap[String, String]): Table =
    new TailracePostgresqlTable
}

object TailracePostgresql {
  val Format = "tailrace-postgresql"
}

final class TailracePostgresqlTable extends Table with SupportsWrite with ReportsSinkMetrics with ExactlyOnceTable {
  @volatile private var latest = EpochCounts.none

  override def format: String = TailracePostgresql.Format

  // Spark decides by this name whether the offset log of a stateless query may be written in the background.
  override def name(): String = "ForeachSink"
  override def toString: String = TailracePostgresql.Format
  override def schema(): StructType = new StructType
  override def capabilities(): JSet[TableCapability] =
    EnumSet.of(TableCapability.STREAMING_WRITE, TableCapability.ACCEPT_ANY_SCHEMA)

  override def newWriteBuilder(info: LogicalWriteInfo): WriteBuilder =
    new WriteBuilder with SupportsStreamingUpdateAsAppend {
      override def build(): Write = new Write {
        override def toStreaming: StreamingWrite = new PostgresqlWrite(
          PostgresqlOptions.of(info.options()),
          info.schema(),
          info.queryId(),
          counts => latest = counts)
      }
    }

  /** Shown in Spark's progress of the epoch. */
  override def metrics(): JMap[String, String] = latest.byName.asJava
}
