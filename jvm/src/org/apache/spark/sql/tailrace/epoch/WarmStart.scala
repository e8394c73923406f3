package org.apache.spark.sql.tailrace.epoch

import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.datasources.v2.RealTimeStreamScanExec
import org.apache.spark.sql.execution.streaming.operators.stateful.EventTimeWatermarkExec
import org.apache.spark.sql.tailrace.conf.TailraceConf

/**
 * The first epoch boundaries of a cold JVM take up to seconds. The first epochs of a run are short, so that those
 * boundaries come when the query has just been started anyway, and not minutes later.
 */
private[epoch] object WarmStart {
  /** How long a short epoch lasts. */
  val ShortMs = 1000L

  /** How many epochs at the start of a run are short. */
  def shortEpochs(plan: SparkPlan): Int = {
    // The watermark moves when an epoch ends. While partitions are being caught up with, each at its own pace, an early
    // end would make rows late that are not.
    val hasWatermark = plan.exists(_.isInstanceOf[EventTimeWatermarkExec])
    val isLong =
      plan.collectFirst { case scan: RealTimeStreamScanExec => scan.batchDurationMs > ShortMs }.contains(true)
    if (isLong && !hasWatermark) TailraceConf.WarmupEpochs.valueIn(plan.conf) else 0
  }
}
