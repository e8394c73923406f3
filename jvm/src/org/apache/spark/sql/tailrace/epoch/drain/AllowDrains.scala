package org.apache.spark.sql.tailrace.epoch.drain

import java.util.concurrent.TimeUnit

import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.datasources.v2.RealTimeStreamScanExec
import org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution
import org.apache.spark.sql.tailrace.metrics.TaskIdentity
import org.apache.spark.sql.tailrace.plan.{RehearsedPlan, Stages}
import org.apache.spark.sql.tailrace.sink.kafka.SinkRuns

/**
 * Lets the epoch that is being planned be ended early. If the run is to be drained already, the epoch does not begin: the
 * one before has been committed, and the query's thread waits here until it is stopped.
 */
object AllowDrains extends Rule[SparkPlan] {
  override def apply(plan: SparkPlan): SparkPlan =
    if (!Stages.reads(plan) || RehearsedPlan.isOne(plan)) plan
    else {
      val context = plan.session.sparkContext
      val run = Option(context.getLocalProperty(TaskIdentity.RunKey))
      val epoch = Option(context.getLocalProperty(MicroBatchExecution.BATCH_ID_KEY)).flatMap(_.toLongOption)
      run.zip(epoch).foreach { case (run, epoch) => Drains.passOrWait(run, epoch) }
      drainable(plan, run.fold(Map.empty[(String, Int), Long])(SinkRuns.lastWritten))
    }

  /**
   * If an older run has written rows that come again, the epoch lasts until they have: only together do they come in the
   * order in which they came then.
   *
   * In two steps: scans of the same stream and duration are equal to Spark, which does not put one in another's place.
   */
  private def drainable(plan: SparkPlan, written: Map[(String, Int), Long]): SparkPlan = {
    val durations = plan.collect { case scan: RealTimeStreamScanExec => scan.stream -> scan.batchDurationMs }.toMap
    val marked = plan.transform { case scan: RealTimeStreamScanExec => scan.copy(batchDurationMs = NoDuration) }
    marked.transform {
      case scan: RealTimeStreamScanExec if scan.batchDurationMs == NoDuration =>
        val own = durations(scan.stream)
        val longest = if (written.isEmpty) own else own + LongestCatchUpMs
        val drainable = new DrainableScanExec(scan.output, scan.scan, scan.stream, scan.start, longest)
        if (written.nonEmpty) {
          drainable.lasts(own, written)
        }
        drainable
    }
  }

  private val NoDuration = -1L
  private val LongestCatchUpMs = TimeUnit.HOURS.toMillis(24)
}
