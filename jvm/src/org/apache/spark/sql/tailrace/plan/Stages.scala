package org.apache.spark.sql.tailrace.plan

import java.util.Locale

import org.apache.spark.sql.connector.write.BatchWrite
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.datasources.v2.{RealTimeStreamScanExec, WriteToDataSourceV2Exec}
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec
import org.apache.spark.sql.execution.streaming.sources.MicroBatchWrite

import tailrace.support.Operators

/** The parts of a plan between shuffles, numbered from the sources to the sink; the same in every epoch. */
final class Stages(plan: SparkPlan) {
  import Stages._

  // Ordered from the sink to the sources. Stages are numbered in reverse, so a stage comes after those that it reads.
  private val shuffles = plan.collect { case exchange: ShuffleExchangeExec if reads(exchange) => exchange }
  val last: Int = shuffles.length

  /** The stage that feeds the exchange. */
  def endingIn(exchange: ShuffleExchangeExec): Int = last - 1 - shuffles.indexWhere(_ eq exchange)

  def shapes: Seq[StageShape] = tops.map { case (stage, top) => shapeOf(stage, top) }

  /** The largest number of shuffles that a row passes through. */
  def depth: Int = depthOf(plan)

  private def depthOf(node: SparkPlan): Int = {
    val below = node.children.filter(reads).map(depthOf).maxOption.getOrElse(0)
    if (node.isInstanceOf[ShuffleExchangeExec]) below + 1 else below
  }

  /** Each stage's number and its top node, from the sources to the sink. */
  def tops: Seq[(Int, SparkPlan)] =
    shuffles.map(exchange => endingIn(exchange) -> exchange.child).reverse :+ (last -> plan)

  private def shapeOf(stage: Int, top: SparkPlan): StageShape = {
    val nodes = within(top)
    StageShape(
      stage,
      inputs = nodes.collect { case exchange: ShuffleExchangeExec => endingIn(exchange) }.sorted,
      sources = nodes.collect { case scan: RealTimeStreamScanExec => scan.stream.toString },
      operators = nodes.reverse.flatMap(nameOf).distinct,
      tasks = nodes.collectFirst { case exchange: ShuffleExchangeExec => exchange.outputPartitioning.numPartitions },
      sink = nodes.collectFirst { case write: WriteToDataSourceV2Exec => sinkOf(write.batchWrite) })
  }

  private def sinkOf(write: BatchWrite): String = write match {
    case epoch: MicroBatchWrite =>
      val name = epoch.writeSupport.getClass.getName.split('.').last.takeWhile(_ != '$')
      name.stripPrefix("Python").replaceAll("(Streaming|Writer)?(Write|Table)$", "").toLowerCase(Locale.ROOT)
    case other => other.toString
  }

  /** The nodes of a stage that the stream's rows pass through, from the top down to the shuffles that it reads. */
  def within(top: SparkPlan): Seq[SparkPlan] = top match {
    case exchange: ShuffleExchangeExec => Seq(exchange)
    case node => node +: node.children.filter(reads).flatMap(within)
  }

  private def nameOf(node: SparkPlan): Option[String] = node match {
    case _: RealTimeStreamScanExec | _: ShuffleExchangeExec => None
    case _ => Operators.documentedName(node.getClass.getName)
  }
}

/** A stage as shown to users. Its number of tasks is known if it reads a shuffle. */
final case class StageShape(
    stage: Int,
    inputs: Seq[Int],
    sources: Seq[String],
    operators: Seq[String],
    tasks: Option[Int],
    sink: Option[String])

object Stages {
  /** True if rows of a stream pass through the node. */
  def reads(node: SparkPlan): Boolean = node.exists(_.isInstanceOf[RealTimeStreamScanExec])
}
