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

/** `format("tailrace-kafka")`: Spark's Kafka sink, but each row is written exactly once. */
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
    s"the sink $Format can identify rows in Real-Time Mode only.",
    "start the query with .trigger(realTime=…), or write with format(\"kafka\").")

  /**
   * Either row of a match can complete it, and the join's state does not hold the origin of the other. See
   * [[MatchIdentity]].
   */
  def matchesWithoutIdentity: TailraceException = NoRowIdentity(
    "a replay can complete a match of two streams with either of its rows, and in this query the content of a " +
      "match does not identify it either.",
    "use an inner or left semi join with no other state and no shuffle behind it, or " + NoRowIdentity.Plainly).error
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

  /** Shown in Spark's progress of the epoch. */
  override def metrics(): JMap[String, String] = latest.byName.asJava
}

/**
 * Counts the rows of an epoch that were not simply written.
 *
 * @param deduplicated replayed rows that were dropped because they are in the output already
 * @param corrected    replayed rows that were written although the output holds a version of them
 * @param unidentified rows without a known origin; a replay writes them again
 */
final case class SinkCounts(deduplicated: Long, corrected: Long, unidentified: Long) {
  def +(other: SinkCounts): SinkCounts =
    SinkCounts(deduplicated + other.deduplicated, corrected + other.corrected, unidentified + other.unidentified)

  def byName: Map[String, String] = Map(
    "deduplicated" -> deduplicated.toString,
    "corrected" -> corrected.toString,
    "unidentified" -> unidentified.toString)
}

object SinkCounts {
  val none: SinkCounts = SinkCounts(0, 0, 0)
}
