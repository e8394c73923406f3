package org.apache.spark.sql.tailrace.epoch.warmup

import java.util.UUID

import scala.collection.mutable

import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.datasources.v2.RealTimeStreamScanExec
import org.apache.spark.sql.execution.streaming.operators.stateful.EventTimeWatermarkExec
import org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution
import org.apache.spark.sql.tailrace.metrics.{LiveFigures, TaskIdentity}
import org.apache.spark.sql.tailrace.plan.{RehearsedPlan, Stages}

import tailrace.TailraceException

/**
 * The first epoch boundaries of a cold JVM take up to seconds. The first epochs of a run are short, so that those
 * boundaries come when the query has just been started anyway, and not minutes later.
 */
object WarmStart extends Rule[SparkPlan] {
  private val EpochsKey = "spark.tailrace.warmup.epochs"
  private val DefaultEpochs = "5"
  private val LongestMs = 1000L

  /** The first epoch that this driver has planned of a run. */
  private val firstEpochs = mutable.HashMap.empty[String, Long]

  override def apply(plan: SparkPlan): SparkPlan = if (!Stages.reads(plan)) plan
  else {
    // Also in a rehearsal: a setting that makes no sense is to be found before the start.
    val short = shortEpochs(plan)
    val context = plan.session.sparkContext
    val run = Option(context.getLocalProperty(TaskIdentity.RunKey))
    val epoch = Option(context.getLocalProperty(MicroBatchExecution.BATCH_ID_KEY)).flatMap(_.toLongOption)
    run.zip(epoch).filterNot(_ => RehearsedPlan.isOne(plan)).fold(plan) { case (run, epoch) =>
      in(plan, run, epoch, short)
    }
  }

  /** The run is over. */
  def forget(run: UUID): Unit = synchronized(firstEpochs.remove(run.toString))

  private def in(plan: SparkPlan, run: String, epoch: Long, short: Int): SparkPlan = {
    val passed = synchronized(epoch - firstEpochs.getOrElseUpdate(run, epoch))
    if (short > 0 && (passed == 0 || passed == short)) {
      LiveFigures.warming(run, epoch, isWarming = passed < short)
    }
    if (passed < short) shortened(plan) else plan
  }

  private def shortEpochs(plan: SparkPlan): Int = {
    val text = plan.conf.getConfString(EpochsKey, DefaultEpochs)
    val wanted = text.trim.toIntOption.filter(_ >= 0).getOrElse {
      throw new TailraceException(
        "TAILRACE_BAD_SETTING",
        s"$EpochsKey is '$text', which is no number of epochs.",
        s"give a number, $DefaultEpochs by default, or 0 for none.")
    }
    // The watermark moves at the end of an epoch. While partitions are still being caught up with, each at its own
    // pace, an early end could make late rows of rows that are not.
    val hasWatermark = plan.exists(_.isInstanceOf[EventTimeWatermarkExec])
    val isLong =
      plan.collectFirst { case scan: RealTimeStreamScanExec => scan.batchDurationMs > LongestMs }.contains(true)
    if (isLong && !hasWatermark) wanted else 0
  }

  private def shortened(plan: SparkPlan): SparkPlan = plan.transform {
    case scan: RealTimeStreamScanExec if scan.batchDurationMs > LongestMs => scan.copy(batchDurationMs = LongestMs)
  }
}
