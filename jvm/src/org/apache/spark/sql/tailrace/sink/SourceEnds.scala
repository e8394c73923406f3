package org.apache.spark.sql.tailrace.sink

import java.time.Duration

import scala.jdk.CollectionConverters._

import org.apache.kafka.clients.consumer.KafkaConsumer
import org.apache.kafka.common.TopicPartition

import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.datasources.v2.RealTimeStreamScanExec
import org.apache.spark.sql.tailrace.internals.kafka.{ClientOptions, KafkaErrors, KafkaPartition, KafkaStream}
import org.apache.spark.sql.tailrace.origin.{SourcePartition, SourceScans}

private[tailrace] object SourceEnds {

  /** The current last record of each partition of the topics that the plan reads. */
  def of(plan: SparkPlan): Map[SourcePartition, Long] = SourceScans.in(plan).zipWithIndex.flatMap {
    case (scan, source) => of(scan).map { case (at, end) =>
        SourcePartition(source, at.topic(), at.partition()) -> (end - 1)
      }
  }.filter(_._2 >= 0).toMap

  /** True if all sources of the plan are in Kafka. */
  def areKnown(plan: SparkPlan): Boolean =
    SourceScans.in(plan).forall(scan => KafkaStream.clientParams(scan.stream).isDefined)

  private def of(scan: RealTimeStreamScanExec): Map[TopicPartition, Long] = {
    val settings = KafkaStream.clientParams(scan.stream).getOrElse(
      throw new IllegalStateException(s"the brokers of ${scan.stream} are unknown"))
    val topics = scan.inputPartitions.flatMap(KafkaPartition.of).map(_.topic).distinct
    val consumer =
      new KafkaConsumer[Array[Byte], Array[Byte]](ClientOptions.ofSource(settings).consumer(readCommitted = false))
    try {
      val partitions = topics.flatMap(topic =>
        Option(consumer.partitionsFor(topic)).toSeq.flatMap(_.asScala).map(info =>
          new TopicPartition(topic, info.partition())))
      consumer.endOffsets(partitions.asJava).asScala.map { case (at, end) => at -> end.longValue }.toMap
    } catch {
      // Spark does not recognize Kafka's own exception as the end of a stopped query.
      case stopped: RuntimeException if KafkaErrors.isInterrupt(stopped) =>
        throw new InterruptedException("stopped while asking for the ends of the sources")
    } finally consumer.close(Duration.ZERO)
  }
}
