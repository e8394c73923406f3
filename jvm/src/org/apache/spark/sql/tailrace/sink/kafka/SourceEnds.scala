package org.apache.spark.sql.tailrace.sink.kafka

import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.datasources.v2.RealTimeStreamScanExec
import org.apache.spark.sql.tailrace.internals.kafka.{ClientOptions, KafkaPartition, KafkaStream}
import org.apache.spark.sql.tailrace.origin.{SourcePartition, SourceScans}
import org.apache.spark.sql.tailrace.sink.replay.SourceOffsets.SourceOffsets

private[kafka] object SourceEnds {

  /** The current last record of each partition of the topics that the plan reads. */
  def of(plan: SparkPlan): SourceOffsets = SourceScans.in(plan).zipWithIndex.flatMap { case (scan, source) =>
    of(scan).map { case ((topic, partition), last) => SourcePartition(source, topic, partition) -> last }
  }.filter(_._2 >= 0).toMap

  private def of(scan: RealTimeStreamScanExec): Seq[((String, Int), Long)] = {
    val settings = KafkaStream.clientParams(scan.stream).getOrElse(
      throw new IllegalStateException(s"the brokers of ${scan.stream} are unknown"))
    val reader = new OutputReadBack(ClientOptions.ofSource(settings), readCommitted = false)
    val topics = scan.inputPartitions.flatMap(KafkaPartition.of).map(_.topic).distinct
    topics.flatMap { topic =>
      reader.endOffsets(topic).map { case (partition, end) => (topic, partition.toInt) -> (end - 1) }
    }
  }
}
