package org.apache.spark.sql.tailrace.epoch.rules

import java.util.concurrent.TimeUnit

import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.datasources.v2.RealTimeStreamScanExec
import org.apache.spark.sql.tailrace.epoch.context.{EpochContext, EpochRule, Overlap, ScanControl}
import org.apache.spark.sql.tailrace.epoch.drain.{CatchUp, DrainableScanExec}
import org.apache.spark.sql.tailrace.epoch.overlap.OverlappedScanExec
import org.apache.spark.sql.tailrace.origin.{SourcePartition, SourceScans}

/**
 * Lets the scans of an epoch end before its time when the run is drained. If an older run has written rows that come
 * again, the scans also last until those have come: only within one epoch can they be put into their old order. If
 * epochs overlap, the scans hand over to those of the next epoch.
 */
object MakeScansDrainable extends EpochRule {
  private val LongestCatchUpMs = TimeUnit.HOURS.toMillis(24)

  override def apply(plan: SparkPlan, epoch: EpochContext): SparkPlan =
    epoch.scans.fold(plan)(drainable(plan, _, epoch.overlap))

  // In two steps: scans of the same stream and duration are equal to Spark, which does not replace one by the other.
  // So the first step gives each scan a duration that no other one has: a negative number, which stands for its source.
  private def drainable(plan: SparkPlan, control: ScanControl, overlap: Option[Overlap]): SparkPlan = {
    val durations = SourceScans.in(plan).map(_.batchDurationMs)
    val sources = Iterator.from(0)
    val marked = plan.transform { case scan: RealTimeStreamScanExec =>
      scan.copy(batchDurationMs = -1L - sources.next())
    }
    marked.transform {
      case scan: RealTimeStreamScanExec if scan.batchDurationMs < 0 =>
        val source = (-1L - scan.batchDurationMs).toInt
        val own = durations(source)
        overlap.fold(drainable(scan, source, own, control)) { overlap =>
          new OverlappedScanExec(scan.output, scan.scan, scan.stream, scan.start, own, overlap, source)
        }
    }
  }

  private def drainable(
      scan: RealTimeStreamScanExec,
      source: Int,
      durationMs: Long,
      control: ScanControl): DrainableScanExec = {
    def ofSource(records: Map[SourcePartition, Long]): Map[(String, Int), Long] = records.collect {
      case (at, offset) if at.source == source => (at.topic, at.partition) -> offset
    }
    val until = ofSource(control.readAtLeast)
    val catchUp = Option.when(until.nonEmpty || control.waiting.isDefined) {
      val waiting = control.waiting.fold(Map.empty[(String, Int), Long])(records => ofSource(records.until))
      CatchUp(until, durationMs, waiting, control.waiting.fold(durationMs)(_.atMostMs))
    }
    val longest = if (catchUp.isEmpty) durationMs else durationMs + LongestCatchUpMs
    new DrainableScanExec(scan.output, scan.scan, scan.stream, scan.start, longest, control.run, catchUp)
  }
}
