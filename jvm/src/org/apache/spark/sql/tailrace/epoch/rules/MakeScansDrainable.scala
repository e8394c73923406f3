package org.apache.spark.sql.tailrace.epoch.rules

import java.util.concurrent.TimeUnit

import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.datasources.v2.RealTimeStreamScanExec
import org.apache.spark.sql.tailrace.epoch.context.{EpochContext, EpochRule, ScanControl}
import org.apache.spark.sql.tailrace.epoch.drain.{CatchUp, DrainableScanExec}

/**
 * Lets the scans of an epoch end before its time when the run is drained. If an older run has written rows that come
 * again, the scans also last until those have come: only within one epoch can they be put into their old order.
 */
object MakeScansDrainable extends EpochRule {
  private val NoDuration = -1L
  private val LongestCatchUpMs = TimeUnit.HOURS.toMillis(24)

  override def apply(plan: SparkPlan, epoch: EpochContext): SparkPlan = epoch.scans.fold(plan)(drainable(plan, _))

  // In two steps: scans of the same stream and duration are equal to Spark, which does not replace one by the other.
  private def drainable(plan: SparkPlan, control: ScanControl): SparkPlan = {
    val durations = plan.collect { case scan: RealTimeStreamScanExec => scan.stream -> scan.batchDurationMs }.toMap
    val marked = plan.transform { case scan: RealTimeStreamScanExec => scan.copy(batchDurationMs = NoDuration) }
    marked.transform {
      case scan: RealTimeStreamScanExec if scan.batchDurationMs == NoDuration =>
        val own = durations(scan.stream)
        val catchUp = Option.when(control.readAtLeast.nonEmpty)(CatchUp(control.readAtLeast, durationMs = own))
        val longest = if (catchUp.isEmpty) own else own + LongestCatchUpMs
        new DrainableScanExec(scan.output, scan.scan, scan.stream, scan.start, longest, control.run, catchUp)
    }
  }
}
