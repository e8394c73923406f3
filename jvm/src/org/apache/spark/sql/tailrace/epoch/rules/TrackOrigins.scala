package org.apache.spark.sql.tailrace.epoch.rules

import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.datasources.v2.{RealTimeStreamScanExec, WriteToDataSourceV2Exec}
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec
import org.apache.spark.sql.tailrace.epoch.context.{EpochContext, EpochRule, OriginTracking}
import org.apache.spark.sql.tailrace.errors.{ErrorGuardExec, ErrorPolicy}
import org.apache.spark.sql.tailrace.metrics.{LatencyInProgressExec, TimedWrite}
import org.apache.spark.sql.tailrace.operators.origin.{
  OriginFromSourceExec, OriginIntoShuffleExec, OriginOutOfShuffleExec
}
import org.apache.spark.sql.tailrace.origin.SourceScans
import org.apache.spark.sql.tailrace.plan.Stages

/**
 * In a real-time plan, lets each row's origin follow it: it is noted where the row is read, crosses each shuffle
 * behind the row's own bytes, and is known wherever the row is worked on. The query's schema and output stay as they
 * are. Along the way the rows are timed, if the context says so.
 */
object TrackOrigins extends EpochRule {
  override def apply(plan: SparkPlan, epoch: EpochContext): SparkPlan =
    epoch.tracking.fold(plan)(tracking => new TrackedPlan(plan, tracking, epoch.onError).result)

  private final class TrackedPlan(plan: SparkPlan, tracking: OriginTracking, onError: ErrorPolicy) {
    import tracking.{everyRow, isTimed, partitions}
    private val stages = new Stages(plan)
    private val scans = SourceScans.in(plan)

    def result: SparkPlan = track(plan, stages.last)

    private def track(node: SparkPlan, stage: Int): SparkPlan = node match {
      case scan: RealTimeStreamScanExec =>
        OriginFromSourceExec(scan, scans.indexWhere(_ eq scan), partitions, stage, isTimed)
      case exchange: ShuffleExchangeExec if Stages.reads(exchange) => throughShuffle(exchange, stage)
      case write: WriteToDataSourceV2Exec if Stages.reads(write) => intoSink(write, stage)
      case _ =>
        node.withNewChildren(node.children.map(child => if (Stages.reads(child)) track(child, stage) else child))
    }

    private def guarded(top: SparkPlan, stage: Int): SparkPlan = ErrorGuardExec(track(top, stage), onError)

    private def throughShuffle(exchange: ShuffleExchangeExec, readBy: Int): SparkPlan = {
      val stage = stages.endingIn(exchange)
      val below = OriginIntoShuffleExec(guarded(exchange.child, stage), stage, everyRow, isTimed)
      val inOrderOf = tracking.replayed.filter(_ => readBy == stages.last)
      OriginOutOfShuffleExec(exchange.withNewChildren(Seq(below)), partitions, readBy, isTimed, inOrderOf)
    }

    private def intoSink(write: WriteToDataSourceV2Exec, stage: Int): SparkPlan = {
      val rows = guarded(write.query, stage)
      tracking.latency.fold(write.withNewChildren(Seq(rows))) { latency =>
        val timed = write.copy(
          new TimedWrite(write.batchWrite, latency, stage),
          query = new LatencyInProgressExec(rows, latency))
        timed.copyTagsFrom(write)
        timed
      }
    }
  }
}
