package org.apache.spark.sql.tailrace.sink.kafka

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

/** `format("tailrace-kafka")`: Spark's Kafka sink, each row once. */
class TailraceKafka extends TableProvider with DataSourceRegister {
  override def shortName(): String = TailraceKafka.Format
  override def inferSchema(options: CaseInsensitiveStringMap): StructType = new StructType
  override def supportsExternalMetadata(): Boolean = true
  override def getTable(schema: StructType, partitioning: Array[Transform], properties: JMap[String, String]): Table =
    new TailraceKafkaTable
}

object TailraceKafka {
  val Format = "tailrace-kafka"

  def needsRealTime: TailraceException = new TailraceException(
    "TAILRACE_SINK_NEEDS_REAL_TIME",
    s"the sink $Format knows which row is which only in Real-Time Mode.",
    "start the query with .trigger(realTime=…), or write with format(\"kafka\").")

  /** Which of two rows completes a match is a matter of chance, and its state does not say where the other came from. See [[MatchIdentity]]. */
  def cannotKnowMatches: TailraceException = new TailraceException(
    "TAILRACE_NO_ROW_IDENTITY",
    "a match of two streams can be completed by either of its rows when it is computed again, and in this query its content does not " +
      "tell either whether it has come before.",
    "use an inner or left semi join with no other state and no shuffle behind it, or write with format(\"kafka\"), which may write rows twice after a failure.")
}

final class TailraceKafkaTable extends Table with SupportsWrite with ReportsSinkMetrics {
  @volatile private var latest = SinkCounts.none

  // Spark decides by this name whether the offset log of a stateless query may be written in the background.
  override def name(): String = "KafkaTable"
  override def schema(): StructType = new StructType
  override def capabilities(): JSet[TableCapability] =
    EnumSet.of(TableCapability.STREAMING_WRITE, TableCapability.ACCEPT_ANY_SCHEMA)

  override def newWriteBuilder(info: LogicalWriteInfo): WriteBuilder =
    new WriteBuilder with SupportsStreamingUpdateAsAppend {
      override def build(): Write = new Write {
        override def toStreaming: StreamingWrite =
          new ExactlyOnceWrite(SinkOptions.of(info.options()), info.schema(), info.queryId(), counts => latest = counts)
      }
    }

  /** In Spark's progress of the epoch. */
  override def metrics(): JMap[String, String] = latest.byName.asJava
}

/**
 * What became of an epoch's rows besides being written: dropped because the last run had written them already; written
 * though another version of them is there; written without a known origin, so that a replay would write them again.
 */
final case class SinkCounts(suppressed: Long, corrected: Long, unidentified: Long) {
  def +(other: SinkCounts): SinkCounts =
    SinkCounts(suppressed + other.suppressed, corrected + other.corrected, unidentified + other.unidentified)

  def byName: Map[String, String] = Map(
    "suppressed" -> suppressed.toString,
    "corrected" -> corrected.toString,
    "unidentified" -> unidentified.toString)
}

object SinkCounts {
  val none: SinkCounts = SinkCounts(0, 0, 0)
}
