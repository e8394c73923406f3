package org.apache.spark.sql.tailrace.sink.dedup

import org.apache.spark.sql.tailrace.origin.{RowId, SourcePartition}

/** What a deduplicator needs to know of a row that is ready to be written. */
trait Candidate {
  def source: SourcePartition
  def row: RowId

  /**
   * True if a timer made the row, or the end of a session. Its `row` only tells the epoch, so it is recognized by its
   * content.
   */
  final def isMadeByTime: Boolean = source.isMadeByTime

  /** True if rows will soon follow that may be in the output; see `CurrentRow`. */
  def expectsOthers: Boolean

  def hasKey: Boolean

  /** Hash of the output topic and the record's key. */
  def keyHash: Long

  /** Hash of the output topic, the record's key and its value. */
  def contentHash: Long

  /** Digest of everything that the query put into the record. */
  def contentId: ContentId

  /** True if the record has a key and Kafka compacts its topic, so older records of the key may be gone. */
  def isCompacted: Boolean
}

sealed trait Decision

object Decision {

  /** The row is not in the output yet. */
  case object Write extends Decision

  /** The row is in the output already. */
  case object Drop extends Decision

  /**
   * The row is in the output, but an earlier row of its key was written again: write it again to keep it the latest.
   */
  case object Correct extends Decision
}

/** @param ordinal the ordinal with which the row is written */
final case class Decided[+C](candidate: C, decision: Decision, ordinal: Int)

/**
 * Decides which rows of a task are written. Spark computes the open epoch again after a failure, and the rows that are
 * in the output already must not be written a second time.
 *
 * A deduplicator sees the rows of one task in order. It does no I/O and imports neither Spark nor Kafka's client. The
 * strategies are [[NoDeduplication]], [[DeduplicateStateless]] and [[DeduplicateStateful]] by origin, and
 * [[DeduplicateByContent]].
 */
abstract class Deduplicator[C <: Candidate] {
  private var droppedRows = 0L
  private var correctedRows = 0L

  def dropped: Long = droppedRows
  def corrected: Long = correctedRows

  /**
   * Takes the task's next row and returns the rows that are decided now, in the order in which they must be written.
   * The row itself may be held back until more rows of the same record are known.
   */
  def offer(candidate: C): Seq[Decided[C]]

  /** Decides the rows that are still held back, after the last row of the task. */
  def finish(): Seq[Decided[C]] = Nil

  /** Rows of the output that were expected from this task and have not been replayed. */
  def notReplayed: Seq[ContentId] = Nil

  protected final def decide(candidate: C, decision: Decision): Decided[C] =
    decide(candidate, decision, candidate.row.ordinal)

  protected final def decide(candidate: C, decision: Decision, ordinal: Int): Decided[C] = {
    decision match {
      case Decision.Write =>
      case Decision.Drop => droppedRows += 1
      case Decision.Correct => correctedRows += 1
    }
    Decided(candidate, decision, ordinal)
  }
}

/** How replayed rows of a query are recognized. */
sealed trait DeduplicationStrategy

object DeduplicationStrategy {
  /** @param isOrdered true if the rows of a source partition reach the sink in their order */
  final case class StatelessByOrigin(isOrdered: Boolean) extends DeduplicationStrategy
  case object StatefulByOrigin extends DeduplicationStrategy
  case object ByContent extends DeduplicationStrategy
}

object Deduplicator {

  /** @param written what a read-back found of the rows that the task replays */
  def byOrigin[C <: Candidate](
      strategy: DeduplicationStrategy,
      written: WrittenRows,
      task: Int,
      epoch: Long,
      isSameQuery: Boolean): Deduplicator[C] = strategy match {
    case _ if written.isEmpty => new NoDeduplication
    case DeduplicationStrategy.StatelessByOrigin(isOrdered) =>
      new DeduplicateStateless(written, isOrdered, isSameQuery)
    case _ => new DeduplicateStateful(written, task, epoch)
  }
}

/** Writes every row: nothing of the epoch is in the output yet. */
final class NoDeduplication[C <: Candidate] extends Deduplicator[C] {
  override def offer(candidate: C): Seq[Decided[C]] = decide(candidate, Decision.Write) :: Nil
}
