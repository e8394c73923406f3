package org.apache.spark.sql.tailrace.sink.kafka

import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.datasources.v2.RealTimeStreamScanExec
import org.apache.spark.sql.tailrace.internals.kafka.{ClientOptions, KafkaStream}
import org.apache.spark.sql.tailrace.sink.kafka.Offsets.SourceOffsets

private[kafka] object SourceEnds {

  /** The current last record of each partition of the topics that the plan reads. */
  def of(plan: SparkPlan): SourceOffsets = plan.collect { case scan: RealTimeStreamScanExec => of(scan) }.flatten
    .filter(_._2 >= 0).groupMapReduce(_._1)(_._2)(_ max _)

  private def of(scan: RealTimeStreamScanExec): Seq[((String, Int), Long)] = {
    val settings = KafkaStream.clientParams(scan.stream).getOrElse(
      throw new IllegalStateException(s"the brokers of ${scan.stream} are unknown"))
    val options = ClientOptions.ofSource(settings)
    val topics = KafkaStream.offsetsIn(scan.start).keys.map(_._1).toSeq.distinct
    topics.flatMap { topic =>
      new OutputReadBack(options, readCommitted = false).endOffsets(topic).map { case (partition, end) =>
        (topic, partition.toInt) -> (end - 1)
      }
    }
  }
}
