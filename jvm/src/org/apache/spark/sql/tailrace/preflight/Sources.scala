package org.apache.spark.sql.tailrace.preflight

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2
import org.apache.spark.sql.connector.catalog.{SupportsRead, TableCapability}
import org.apache.spark.sql.connector.read.streaming.{MicroBatchStream, SupportsRealTimeMode}
import org.apache.spark.sql.execution.streaming.runtime.StreamingRelation
import org.apache.spark.util.Utils
import org.apache.spark.sql.tailrace.internals.kafka.{KafkaPartition, KafkaStream, Wanted}
import org.apache.spark.sql.tailrace.preflight.KafkaPartitions.Overridden

/**
 * What a query reads.
 *
 * @param realTime   true if it can hand over rows as they arrive
 * @param partitions the number of tasks that read it; unknown if its brokers do not answer
 * @param topics     for a Kafka source
 * @param agesMs     the ages of records that arrived just now
 */
private[preflight] final case class Source(
    number: Int,
    name: String,
    options: Map[String, String],
    realTime: Boolean,
    partitions: Option[Int],
    topics: Seq[String],
    problem: Option[SourceProblem],
    agesMs: Seq[Long] = Nil) {

  def label: String = if (topics.isEmpty) name else s"$name: ${topics.mkString(", ")}"
}

private[preflight] object Sources {
  /** Every source, once for each time that it is read. Reads of the same source are equal. */
  def of(query: LogicalPlan): Seq[LogicalPlan] = query.collect {
    case relation: StreamingRelationV2 => relation
    case relation: StreamingRelation => relation
  }

  /**
   * @param sampleMs how long to watch arriving records, if at all
   * @param access   what clients of the check use in the place of the query's settings
   */
  def look(relation: LogicalPlan, number: Int, sampleMs: Long, access: Overridden): Source = relation match {
    case v2: StreamingRelationV2 => lookAt(v2, number, sampleMs, access)
    case v1: StreamingRelation =>
      Source(number, v1.sourceName, v1.dataSource.options, realTime = false, None, Nil, None)
    case other => throw new IllegalArgumentException(s"not a source: ${other.nodeName}")
  }

  private def lookAt(relation: StreamingRelationV2, number: Int, sampleMs: Long, access: Overridden): Source = {
    val options = relation.extraOptions.asCaseSensitiveMap().asScala.toMap
    val nothing = Source(number, relation.sourceName, options, realTime = false, None, Nil, None)
    relation.table match {
      case table: SupportsRead if table.capabilities.contains(TableCapability.MICRO_BATCH_READ) =>
        try withStream(table, relation)(lookAt(_, nothing, sampleMs, access))
        catch {
          case NonFatal(failure) => nothing.copy(problem = Some(SourceProblem("refused", failure.getMessage)))
        }
      case _ => nothing
    }
  }

  private def lookAt(stream: MicroBatchStream, source: Source, sampleMs: Long, access: Overridden): Source =
    stream match {
      case _: SupportsRealTimeMode if KafkaStream.isKafka(stream) =>
        val partitions = KafkaPartitions.of(stream, access, subscribed(source.options))
        val topics = partitions.toOption.toSeq.flatten.map(KafkaPartition.topicOf).distinct.sorted
        source.copy(
          realTime = true,
          partitions = partitions.toOption.map(_.size),
          topics = topics,
          problem = partitions.left.toOption.orElse(missingRight(stream, topics, access)),
          agesMs = if (sampleMs > 0) partitions.toSeq.flatMap(KafkaAges.during(sampleMs, stream, _, access)) else Nil)
      case _: SupportsRealTimeMode => source.copy(realTime = true)
      case _ => source
    }

  private def subscribed(options: Map[String, String]): String =
    options.collectFirst { case (key, value) if key.equalsIgnoreCase("subscribe") => value }.getOrElse("")

  private def missingRight(
      stream: MicroBatchStream,
      topics: Seq[String],
      access: Overridden): Option[SourceProblem] = {
    val wanted = topics.map(Wanted("topic", _, "Read", "the query reads"))
    KafkaStream.clientParams(stream).map(access).toSeq.flatMap(KafkaRights.problems(_, wanted)).headOption.map(
      SourceProblem.of)
  }

  /** Opens the stream as the query would, while `look` runs. Its metadata goes to a temporary folder. */
  private def withStream(
      table: SupportsRead,
      relation: StreamingRelationV2)(look: MicroBatchStream => Source): Source = {
    val notes = Utils.createTempDir(namePrefix = "tailrace-check")
    try {
      val stream = table.newScanBuilder(relation.extraOptions).build().toMicroBatchStream(notes.toURI.toString)
      try look(stream)
      finally Utils.tryLogNonFatalError(stream.stop())
    } finally Utils.deleteRecursively(notes)
  }
}
