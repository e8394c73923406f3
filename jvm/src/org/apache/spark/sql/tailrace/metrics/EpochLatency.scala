package org.apache.spark.sql.tailrace.metrics

import org.apache.spark.SparkContext
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.GenericRowWithSchema
import org.apache.spark.sql.execution.{CollectMetricsExec, SparkPlan}
import org.apache.spark.sql.types.{DoubleType, LongType, StructField, StructType}
import org.apache.spark.util.AccumulatorV2

/** The end-to-end latencies of an epoch. Spark merges what its tasks recorded when they have ended. */
final class EpochLatency extends AccumulatorV2[(Int, Long), Long] {
  private var counts = new BucketCounts

  override def isZero: Boolean = counts.isEmpty
  override def add(bucketAndCount: (Int, Long)): Unit = counts.add(bucketAndCount._1, bucketAndCount._2)
  override def merge(other: AccumulatorV2[(Int, Long), Long]): Unit = other match {
    case latency: EpochLatency => counts.addAll(latency.counts.flat)
    case _ => throw new IllegalArgumentException(s"$other is not a latency")
  }
  override def reset(): Unit = counts = new BucketCounts

  /** The number of rows. */
  override def value: Long = counts.total
  override def copy(): EpochLatency = {
    val copied = new EpochLatency
    copied.counts.addAll(counts.flat)
    copied
  }

  def row: Row = {
    val sorted = counts.flat.grouped(2).toSeq.sortBy(_(0))
    val total = value
    def percentileMs(share: Double): Any = {
      val wanted = math.max(1L, math.ceil(total * share).toLong)
      val reached = sorted.iterator.scanLeft((0L, 0L)) { case ((_, sum), pair) => (pair(0), sum + pair(1)) }.drop(1)
      reached.find(_._2 >= wanted).map(pair => Buckets.highestOf(pair._1.toInt) / 1000.0).orNull
    }
    new GenericRowWithSchema(
      Array[Any](total) ++ EpochLatency.Shares.map(share => percentileMs(share._2)),
      EpochLatency.Schema)
  }
}

object EpochLatency {
  /** Registered with Spark, which merges it from the tasks. */
  def registered(context: SparkContext): EpochLatency = {
    val latency = new EpochLatency
    context.register(latency)
    latency
  }

  private val Shares = Seq("p50_ms" -> 0.5, "p90_ms" -> 0.9, "p99_ms" -> 0.99, "p999_ms" -> 0.999, "max_ms" -> 1.0)
  private val Schema =
    StructType(StructField("rows", LongType) +: Shares.map(share => StructField(share._1, DoubleType)))
}

/**
 * Adds an epoch's percentiles to Spark's progress, as the observed metrics `tailrace`. Spark collects these from nodes
 * of this kind in the plan. Rows pass it unchanged.
 */
final class LatencyInProgressExec(query: SparkPlan, accumulator: EpochLatency)
    extends CollectMetricsExec(LatencyInProgressExec.Name, Nil, query) {

  /** Adds what the same node of another plan has collected. */
  def add(other: LatencyInProgressExec): Unit = accumulator.merge(other.collected)
  private def collected: EpochLatency = accumulator

  override def collectedMetrics: Row = accumulator.row
  override def resetMetrics(): Unit = accumulator.reset()
  override protected def doExecute(): RDD[InternalRow] = query.execute()
  override def nodeName: String = "LatencyInProgress"
  override protected def stringArgs: Iterator[Any] = Iterator.empty
  override protected def withNewChildInternal(newChild: SparkPlan): LatencyInProgressExec =
    new LatencyInProgressExec(newChild, accumulator)
}

object LatencyInProgressExec {
  val Name = "tailrace"
}
