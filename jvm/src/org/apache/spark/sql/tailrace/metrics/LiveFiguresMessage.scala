package org.apache.spark.sql.tailrace.metrics

import org.apache.spark.sql.tailrace.plan.StageShape

import tailrace.contract.Tagged

/** Everything that was measured since the last message; mirrors `tailrace/contract/live_figures.py`. */
final case class LiveFiguresMessage(
    series: Seq[SeriesUpdate],
    reads: Seq[ReadProgress],
    written: Seq[RowsWritten],
    executors: Seq[ExecutorHealth],
    latestOffsets: Seq[LatestOffset],
    events: Seq[QueryEvent])

/** Durations since the last message, counted by bucket. */
final case class SeriesUpdate(key: SeriesKey, counts: Map[Int, Long])

/**
 * How far a task has read its source partition, and how many rows since the last message. Times are microseconds since
 * 1970, or zero.
 */
final case class ReadProgress(
    run: String,
    epoch: Long,
    topic: String,
    partition: Int,
    beganUs: Long,
    endedUs: Long,
    offset: Long,
    rows: Long)

/** The number of rows handed to the sink since the last message. */
final case class RowsWritten(run: String, rows: Long)

/** The newest offset of a partition, as its broker reports it. */
final case class LatestOffset(run: String, topic: String, partition: Int, offset: Long)

/**
 * The health of an executor's JVM. The pauses of its collector, and the delays of its threads (`hiccups`, by bucket),
 * are those since the last message. A negative CPU load is unknown.
 */
final case class ExecutorHealth(
    executor: String,
    cpuLoad: Double,
    processCpuLoad: Double,
    heapUsedBytes: Long,
    heapMaxBytes: Long,
    gcPausesUs: Seq[Long],
    hiccups: Map[Int, Long])

/** What happened to a run of a query. */
sealed trait QueryEvent extends Tagged {
  def run: String
}

final case class QueryStarted(run: String, id: String, name: Option[String], atMs: Long, realTime: Boolean)
    extends QueryEvent

/** An epoch was planned. If its rows are not timed, no task reports what it reads. */
final case class QueryPlanned(run: String, epochMs: Option[Long], stages: Seq[StageShape], timed: Boolean)
    extends QueryEvent

final case class ReadingStarted(run: String, partitions: Seq[PartitionStart]) extends QueryEvent

/** The offset at which an epoch begins to read a partition. */
final case class PartitionStart(topic: String, partition: Int, offset: Long)

/** The first epochs of a run are short while it warms up. From `epoch` on it warms up, or no longer does. */
final case class WarmupChanged(run: String, epoch: Long, warming: Boolean) extends QueryEvent

/** An epoch has begun, while the one before was still running; if not, `reason` says why. */
final case class EpochBegun(run: String, epoch: Long, reason: Option[String]) extends QueryEvent

final case class EpochLaunched(run: String, epoch: Long, atMs: Long) extends QueryEvent

/** All tasks of the epoch have ended. */
final case class EpochFinished(run: String, epoch: Long, atMs: Long) extends QueryEvent

final case class EpochCommitted(run: String, epoch: Long, atMs: Long, state: Seq[StateOperator]) extends QueryEvent

/** An operator's state at the end of an epoch. */
final case class StateOperator(operator: String, rows: Long, memoryBytes: Long, commitMs: Double)

/** Records that could not be processed, and the error of the last one. */
final case class BadRecordsSkipped(run: String, records: Long, error: String) extends QueryEvent

final case class QueryTerminated(run: String, error: Option[String]) extends QueryEvent
