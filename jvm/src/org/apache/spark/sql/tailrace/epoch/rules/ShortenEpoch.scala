package org.apache.spark.sql.tailrace.epoch.rules

import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.datasources.v2.RealTimeStreamScanExec
import org.apache.spark.sql.tailrace.epoch.context.{EpochContext, EpochRule}

/** Makes an epoch at the start of a run shorter than the user's trigger says. */
object ShortenEpoch extends EpochRule {
  override def apply(plan: SparkPlan, epoch: EpochContext): SparkPlan = epoch.shortenToMs.fold(plan) { longestMs =>
    plan.transform {
      case scan: RealTimeStreamScanExec if scan.batchDurationMs > longestMs => scan.copy(batchDurationMs = longestMs)
    }
  }
}
