package org.apache.spark.sql.tailrace.epoch.context

import org.apache.spark.sql.connector.read.InputPartition
import org.apache.spark.sql.tailrace.errors.ErrorPolicy
import org.apache.spark.sql.tailrace.metrics.EpochLatency
import org.apache.spark.sql.tailrace.origin.{ReplayedRows, SourcePartition, SourcePartitions}

/**
 * What the rules know of the epoch that is being planned. `PrepareEpoch` decides all of it once per epoch, before the
 * first rule is applied.
 *
 * Two things happen later, while the plan is executed on the driver, because Spark asks each source for its partitions
 * only then: `OriginFromSourceExec` fills the table of source partitions ([[OriginTracking.partitions]]), and tells
 * `LiveFigures` which partitions are read and from which offsets.
 *
 * @param onError            what to do with a record that cannot be processed
 * @param addsOperators      false if the user keeps Spark's own allowlist in force. Spark would then refuse the query
 *                           for any operator that it does not know, so a query gets none that it can run without.
 * @param tracking           how the origins of rows are tracked; none if nothing needs them
 * @param shortenToMs        how long the epoch lasts at most; none if it lasts as long as the user's trigger says
 * @param scans              what the scans need to end on request; none if only time ends them
 * @param overlap            how the epoch hands over to the next one while both run; none if it ends before that begins
 * @param refusesUnsupported whether a plan with anything outside the support registry is an error
 */
final case class EpochContext(
    onError: ErrorPolicy,
    addsOperators: Boolean,
    tracking: Option[OriginTracking],
    shortenToMs: Option[Long],
    scans: Option[ScanControl],
    overlap: Option[Overlap],
    refusesUnsupported: Boolean)

object EpochContext {
  /**
   * Of a plan that `check` looks at and nobody runs: it gets Tailrace's operators, and nothing that only an execution
   * needs. It is not refused, so that `check` can report all findings at once.
   */
  def rehearsal(addsOperators: Boolean): EpochContext = operatorsOnly(ErrorPolicy.Fail, addsOperators)

  /** Enough to replace operators. */
  def operatorsOnly(onError: ErrorPolicy, addsOperators: Boolean): EpochContext = EpochContext(
    onError,
    addsOperators,
    tracking = None,
    shortenToMs = None,
    scans = None,
    overlap = None,
    refusesUnsupported = false)
}

/** Which epoch of which run. */
final case class EpochId(run: String, epoch: Long) {
  def before: EpochId = copy(epoch = epoch - 1)
  def next: EpochId = copy(epoch = epoch + 1)
}

/**
 * @param partitions the epoch's table of source partitions, which is empty until the plan is executed
 * @param everyRow   whether the origin of every row crosses a shuffle; otherwise only those of timed rows do
 * @param latency    collects the epoch's end-to-end latencies for Spark's progress; none if rows are not timed
 * @param replayed   rows of this epoch that an earlier attempt has written, if they must come in the same order again
 */
final case class OriginTracking(
    partitions: SourcePartitions,
    everyRow: Boolean,
    latency: Option[EpochLatency],
    replayed: Option[ReplayedRows]) {
  def isTimed: Boolean = latency.isDefined
}

/**
 * @param run         a request to drain this run ends its scans
 * @param readAtLeast by source partition, the last record that must be read before the epoch may end
 * @param waiting     the records that are read before a timer fires; none if timers fire at once
 */
final case class ScanControl(run: String, readAtLeast: Map[SourcePartition, Long], waiting: Option[WaitingRecords])

/**
 * Records that were in the sources when the epoch began.
 *
 * @param until    by source partition, the last of them
 * @param atMostMs how long the epoch may last until they have been read
 */
final case class WaitingRecords(until: Map[SourcePartition, Long], atMostMs: Long)

/**
 * An epoch whose tasks can hand over to those of the next epoch.
 *
 * @param epochMs how long the epochs of the query are by the user's trigger; the first ones of a run are shorter
 * @param follows the epoch before, if this one is planned ahead, while that one is still running
 */
final case class Overlap(id: EpochId, epochMs: Long, follows: Option[RunningEpoch])

/** @param sources by number of the source */
final case class RunningEpoch(sources: Seq[RunningSource])

/**
 * @param endsAtMs   when its part of the epoch will be over
 * @param partitions what is being read of it
 */
final case class RunningSource(endsAtMs: Long, partitions: Seq[InputPartition])
