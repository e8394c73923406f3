package org.apache.spark.sql.tailrace.epoch.overlap

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.connector.read.streaming.SupportsRealTimeMode
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.streaming.operators.stateful.{EventTimeWatermarkExec, StateStoreWriter}
import org.apache.spark.sql.tailrace.conf.TailraceConf
import org.apache.spark.sql.tailrace.internals.EvictionWatermark
import org.apache.spark.sql.tailrace.metrics.LatencyInProgressExec
import org.apache.spark.sql.tailrace.plan.Stages

import tailrace.TailraceException

/**
 * An epoch that runs with the plan that was made ahead, in the place of the query's own plan. Spark reads offsets and
 * metrics from the latter when the epoch is over, so it must be of the same shape, and is given what the other counted.
 */
private[overlap] final class AdoptedEpoch(ran: OverlappedWriteExec, official: OverlappedWriteExec) {
  import AdoptedEpoch._

  private val nodes = onTheStreamingPath(ran).zip(onTheStreamingPath(official))
  requireSameShape(onTheStreamingPath(ran).map(shapeOf), onTheStreamingPath(official).map(shapeOf))

  /** False if there are partitions that the plan made ahead does not know. */
  def readsAllPartitions: Boolean = nodes.forall {
    case (one: OverlappedScanExec, other: OverlappedScanExec) =>
      EpochJob.partitionsOf(one) == EpochJob.partitionsOf(other)
    case _ => true
  }

  /** Hands the tasks the watermarks that were not known when they began. */
  def bindWatermarks(): Unit = HandOvers.of(ran.overlap.id.before).foreach { before =>
    nodes.foreach {
      case (_, operator: StateStoreWriter) if EvictionWatermark.canBeKnownLate(operator) =>
        LateWatermark.leave(operator, before)
      case _ =>
    }
  }

  /**
   * When the epoch is over. Throws if its tasks did not begin exactly where the epoch before ended, in the sources or
   * in the state.
   */
  def merge(): Unit = {
    // All of them before anything is merged.
    nodes.foreach {
      case (one: OverlappedScanExec, other: OverlappedScanExec) => requireStart(one, other)
      case (one: StateStoreWriter, other: StateStoreWriter) => requireState(one, other)
      case _ =>
    }
    nodes.foreach { case (one, other) => merge(one, other) }
  }

  private def merge(one: SparkPlan, other: SparkPlan): Unit = {
    one.metrics.foreach { case (name, metric) => other.metrics.get(name).foreach(_.merge(metric)) }
    (one, other) match {
      case (one: OverlappedScanExec, other: OverlappedScanExec) =>
        one.endOffsetsAccumulator.value.asScala.foreach(other.endOffsetsAccumulator.add)
      case (one: StateStoreWriter, other: StateStoreWriter) =>
        one.checkpointInfoAccumulator.value.asScala.foreach(other.checkpointInfoAccumulator.add)
        other.instanceMetricsAccumulator.merge(one.instanceMetricsAccumulator)
      // The watermark of the next epoch is made of it.
      case (one: EventTimeWatermarkExec, other: EventTimeWatermarkExec) =>
        other.eventTimeStats.merge(one.eventTimeStats)
      case (one: LatencyInProgressExec, other: LatencyInProgressExec) => other.add(one)
      case _ =>
    }
  }
}

private[overlap] object AdoptedEpoch {
  private val Code = "TAILRACE_EPOCHS_DO_NOT_MEET"
  private val StartAgain = "start the query again: it continues from its last commit and no row is lost. If it " +
    s"happens again, set ${TailraceConf.EpochsOverlap.key} to off, and report it."

  /** What Spark reads metrics from. The static side of a join may have been planned in another way. */
  private def onTheStreamingPath(plan: SparkPlan): Seq[SparkPlan] = plan.collect {
    case node if Stages.reads(node) => node
  }

  private[overlap] def shapeOf(node: SparkPlan): String = {
    val columns = node.output.map(_.dataType.simpleString).mkString(", ")
    s"${node.getClass.getSimpleName}($columns)${watermarkOf(node)}"
  }

  // It is part of the plan, and decides which rows are late and, where it is not bound late, which state is removed.
  private def watermarkOf(node: SparkPlan): String = {
    val forEviction = EvictionWatermark.of(node).filterNot(_ => EvictionWatermark.canBeKnownLate(node))
    val watermarks = EvictionWatermark.ofLateRows(node).toSeq ++ forEviction
    if (watermarks.isEmpty) "" else watermarks.mkString(" with the watermarks ", " and ", "")
  }

  private[overlap] def requireSameShape(ran: Seq[String], official: Seq[String]): Unit = if (ran != official) {
    val (one, other) = ran.zipAll(official, "nothing", "nothing").find { case (one, other) => one != other }.get
    throw new TailraceException(
      Code,
      s"the epoch was planned ahead with $one, and when its turn came with $other.",
      StartAgain)
  }

  private def requireStart(ran: OverlappedScanExec, official: OverlappedScanExec): Unit = {
    val began = ran.startsAccumulator.value.asScala.toSeq.sortBy(_.index).map(_.partitionOffset).toArray
    val start = official.stream.asInstanceOf[SupportsRealTimeMode].mergeOffsets(began)
    requireSameOffsets(start.json(), official.start.json())
  }

  private[overlap] def requireSameOffsets(began: String, committed: String): Unit = if (began != committed) {
    throw new TailraceException(
      Code,
      s"the epoch before ended at $committed, and the tasks of this one began at $began.",
      StartAgain)
  }

  private def requireState(ran: StateStoreWriter, official: StateStoreWriter): Unit = {
    val state = official.getStateInfo
    val committed = state.stateStoreCkptIds.fold(Seq.empty[Seq[String]])(_.toSeq.map(_.toSeq))
    val bases = ran.checkpointInfoAccumulator.value.asScala.toSeq.map { info =>
      StateBase(info.partitionId, info.batchVersion - 1, info.baseStateStoreCkptId.fold(Seq.empty[String])(_.toSeq))
    }
    requireSameState(state.operatorId, bases, state.storeVersion, committed)
  }

  /**
   * @param bases     what the state of each partition was computed from
   * @param version   which it should have been
   * @param committed by partition, the checkpoints of that version
   */
  private[overlap] def requireSameState(
      operator: Long,
      bases: Seq[StateBase],
      version: Long,
      committed: Seq[Seq[String]]): Unit = {
    val expected = committed.zipWithIndex.map { case (checkpoint, partition) =>
      StateBase(partition, version, checkpoint)
    }
    val found = bases.sortBy(_.partition)
    // Without a checkpoint there is nothing to compare, so it is not taken on trust either.
    if (committed.isEmpty || committed.exists(_.isEmpty) || found != expected) {
      throw new TailraceException(
        Code,
        s"the epoch before committed the state of operator $operator as ${expected.mkString(", ")}, and the tasks of " +
          s"this one continued from ${found.mkString(", ")}.",
        StartAgain)
    }
  }
}

/** The state of a partition that an epoch began with. */
private[overlap] final case class StateBase(partition: Int, version: Long, checkpoint: Seq[String])
