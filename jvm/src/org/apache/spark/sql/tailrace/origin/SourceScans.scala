package org.apache.spark.sql.tailrace.origin

import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.datasources.v2.RealTimeStreamScanExec
import org.apache.spark.sql.tailrace.internals.kafka.KafkaPartition

/**
 * The scans of a plan. Their order numbers the query's sources, see [[SourcePartition]]. It is the order in which the
 * query names them, and no rule changes it.
 */
private[tailrace] object SourceScans {
  def in(plan: SparkPlan): Seq[RealTimeStreamScanExec] = plan.collect { case scan: RealTimeStreamScanExec => scan }

  /**
   * By partition that the plan reads from Kafka, the first offset. The scans are asked instead of their start offsets,
   * because they also read partitions that have been added since those were committed.
   */
  def startsIn(plan: SparkPlan): Map[SourcePartition, Long] = in(plan).zipWithIndex.flatMap { case (scan, source) =>
    scan.inputPartitions.flatMap(KafkaPartition.of).map { at =>
      SourcePartition(source, at.topic, at.partition) -> at.fromOffset
    }
  }.toMap
}
