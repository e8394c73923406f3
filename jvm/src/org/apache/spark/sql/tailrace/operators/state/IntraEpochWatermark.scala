package org.apache.spark.sql.tailrace.operators.state

import java.util.Locale

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, BasePredicate, InterpretedPredicate, Literal}
import org.apache.spark.sql.catalyst.expressions.BindReferences.bindReference
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.datasources.v2.LowLatencyClock
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec
import org.apache.spark.sql.execution.streaming.operators.stateful.{EventTimeWatermarkExec, WatermarkSupport}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.tailrace.conf.TailraceConf
import org.apache.spark.sql.tailrace.origin.KnowsSourcePartitions
import org.apache.spark.sql.tailrace.plan.Stages

/** The event-time column of rows, and how late they may be. */
private[tailrace] final case class EventTime(column: Int, isWindow: Boolean, delayMs: Long) {

  /**
   * In milliseconds. A window counts with its start, because its rows are not older. A row without a time is the
   * oldest.
   */
  def of(row: InternalRow): Long =
    if (row.isNullAt(column)) Long.MinValue
    else Math.floorDiv(
      if (isWindow) row.getStruct(column, 2).getLong(0) else row.getLong(column),
      EventTime.MicrosPerMilli)
}

private[tailrace] object EventTime {
  val MicrosPerMilli = 1000L
}

/**
 * What an operator needs for a watermark that moves within an epoch.
 *
 * @param times       by input; none if it has no watermark, in which case it is ignored, as in Spark
 * @param idleAfterMs how long to wait for a silent source partition
 */
private[tailrace] final case class IntraEpochWatermark(times: Seq[Option[EventTime]], idleAfterMs: Long) {

  /**
   * @param partitions by input, the indices of the source partitions that it reads
   * @param takeOver   if the task is built before its epoch begins
   */
  def inTask(partitions: Seq[Range], takeOver: Option[EpochTakeOver] = None): MovingWatermark = {
    val all = partitions.map(_.end).max
    val delays = Array.fill(all)(Option.empty[Long])
    for ((range, time) <- partitions.zip(times); partition <- range) {
      delays(partition) = time.map(_.delayMs)
    }
    // No partition counts as silent before the epoch begins.
    val beginsAtMs = takeOver.map(_.beginsAtMs).foldLeft(LowLatencyClock.getClock.getTimeMillis())(math.max)
    new MovingWatermark(new TaskWatermark(delays.toIndexedSeq, idleAfterMs, beginsAtMs))
  }
}

private[tailrace] object IntraEpochWatermark {
  /** None if the watermark stays fixed within an epoch, as in Spark, or if a task cannot know how far time has come. */
  def of(inputs: Seq[SparkPlan], conf: SQLConf): Option[IntraEpochWatermark] =
    TailraceConf.WatermarkIdleAfter.of(conf).flatMap { idleAfterMs =>
      val timed = inputs.map(delayOf)
      val times = inputs.zip(timed).map { case (input, delayMs) => delayMs.flatMap(timeOf(input, _, conf)) }
      val canTell =
        timed.exists(_.isDefined) && timed.map(_.isDefined) == times.map(_.isDefined) && inputs.forall(keepsOrder)
      Option.when(canTell && (inputs.length == 1 || followsTheSlowest(conf)))(IntraEpochWatermark(times, idleAfterMs))
    }

  /** Executes an input, and returns the indices of the source partitions that it reads. */
  def execute(input: SparkPlan): (RDD[InternalRow], Range) = {
    val partitions = input.collectFirst { case source: KnowsSourcePartitions => source.partitions }
    val before = partitions.fold(0)(_.length)
    val rows = input.execute()
    rows -> (before until partitions.fold(0)(_.length))
  }

  private def delayOf(input: SparkPlan): Option[Long] =
    input.collect { case watermark: EventTimeWatermarkExec => watermark.delayMs }.maxOption

  private def timeOf(input: SparkPlan, delayMs: Long, conf: SQLConf): Option[EventTime] =
    columnOf(input.output, conf).map { column =>
      EventTime(input.output.indexWhere(_.exprId == column.exprId), column.dataType.isInstanceOf[StructType], delayMs)
    }

  def columnOf(columns: Seq[Attribute], conf: SQLConf): Option[Attribute] =
    WatermarkSupport.findEventTimeColumn(
      columns,
      allowMultipleEventTimeColumns = !conf.getConf(SQLConf.STATEFUL_OPERATOR_ALLOW_MULTIPLE))

  /** True for late rows. Interpreted, because the next step replaces it before compilation would pay off. */
  def lateness(columns: Seq[Attribute], watermarkMs: Long, conf: SQLConf): BasePredicate = {
    val isLate =
      WatermarkSupport.watermarkExpression(columnOf(columns, conf), Some(watermarkMs)).getOrElse(Literal(false))
    InterpretedPredicate(bindReference(isLate, columns))
  }

  // A second shuffle does not keep the order of a source partition's rows.
  private def keepsOrder(input: SparkPlan): Boolean =
    input.collect { case shuffle: ShuffleExchangeExec if Stages.reads(shuffle) => shuffle }.length <= 1

  private def followsTheSlowest(conf: SQLConf): Boolean =
    conf.getConf(SQLConf.STREAMING_MULTIPLE_WATERMARK_POLICY).toLowerCase(Locale.ROOT) == "min"

  /** Called when the query is planned, so a wrong setting is reported before the start. */
  def checkSetting(conf: SQLConf): Unit = TailraceConf.WatermarkIdleAfter.of(conf)
}
