package org.apache.spark.sql.tailrace.sink.dedup

import scala.collection.mutable

import org.apache.spark.sql.tailrace.origin.{RowId, SourcePartition}

/**
 * For queries with state. What a stateful operator makes of a record depends on the rows before it, and a replay may
 * bring them in another order. So a row is recognised by its origin and its content, and the order counts as well: the
 * last record of a key in the output must be the last row that the operator makes for it.
 *
 * The output holds a list of records for each key. While the epoch is replayed, a pointer moves forward through that
 * list. A row that equals a record at the pointer or after it is dropped, and the pointer moves past that record. At
 * the first row that does not, the key has diverged: that row and all later ones of the key are written. If a key has
 * not diverged by the end of the epoch, but records are left after the pointer, a consumer would take one of those for
 * the latest: the key's last row is written again.
 *
 * Rows without a key have no latest one. Each is compared with the record of the same origin only.
 *
 * @param written what the output holds of the epoch
 * @param task    this task: it replays what it wrote in earlier attempts
 */
final class DeduplicateStateful[C <: Candidate](written: WrittenRows, task: Int) extends Deduplicator[C] {
  private val histories = written.historiesOf(task).map { case (key, records) => key -> new KeyHistory[C](records) }
  private lazy val withoutKey = new KeyHistory[C](written.byTask(task).toArray)
  private lazy val newestOffsets = written.newestOffsetsOf(task)
  private var offered = 0L

  override def offer(candidate: C): Seq[Decided[C]] = {
    offered += 1
    val decision =
      if (!candidate.hasKey) compareAlone(candidate)
      else histories.get(candidate.keyHash).fold[Decision](Decision.Write)(compare(candidate, _))
    decide(candidate, decision) :: Nil
  }

  private def compare(candidate: C, history: KeyHistory[C]): Decision =
    if (history.hasDiverged) {
      rewrite(candidate, history)
    } else if (history.advance(candidate) || mayBeCompactedAway(candidate, history)) {
      history.dropped(candidate, offered)
      Decision.Drop
    } else {
      history.diverge()
      rewrite(candidate, history)
    }

  private def compareAlone(candidate: C): Decision =
    if (withoutKey.hasEqual(candidate)) Decision.Drop else rewrite(candidate, withoutKey)

  private def rewrite(candidate: C, history: KeyHistory[C]): Decision =
    if (history.hasVersionOf(candidate)) Decision.Correct else Decision.Write

  /**
   * True if the row may have been in the output until Kafka removed it in favour of a later record. It is not written
   * again, because it would hide that record.
   */
  private def mayBeCompactedAway(candidate: C, history: KeyHistory[C]): Boolean =
    candidate.isCompacted && candidate.isIdentified && !history.isAtEnd && !history.hasVersionOf(candidate) &&
      newestOffsets.get(candidate.source).exists(_ >= candidate.row.offset)

  override def finish(): Seq[Decided[C]] = histories.valuesIterator.flatMap(_.takeStale()).toSeq.sortBy(_._2).map {
    case (candidate, _) => decide(candidate, Decision.Correct)
  }
}

/** The records of a key in the order of the topic, and how far a replay has got in them. */
private[dedup] final class KeyHistory[C <: Candidate](records: Array[WrittenRow]) {
  private var next = 0
  private var diverged = false
  private var lastDropped: Option[(C, Long)] = None
  // Not needed as long as the rows come in the order of the records.
  private lazy val positions: mutable.HashMap[(SourcePartition, RowId), mutable.ArrayBuffer[Int]] = {
    val found = mutable.HashMap.empty[(SourcePartition, RowId), mutable.ArrayBuffer[Int]]
    records.indices.foreach { position =>
      val record = records(position)
      found.getOrElseUpdate((record.source, record.row), mutable.ArrayBuffer.empty) += position
    }
    found
  }

  def hasDiverged: Boolean = diverged

  def diverge(): Unit = diverged = true

  def isAtEnd: Boolean = next == records.length

  def hasVersionOf(candidate: C): Boolean = versionsOf(candidate).nonEmpty

  def hasEqual(candidate: C): Boolean = versionsOf(candidate).exists(records(_).contentHash == candidate.contentHash)

  /** Moves past the first record from the pointer on that equals the row; false if there is none. */
  def advance(candidate: C): Boolean = {
    val found =
      if (!isAtEnd && records(next).isSame(candidate)) Some(next)
      else versionsOf(candidate).find(at => at >= next && records(at).contentHash == candidate.contentHash)
    found.foreach(position => next = position + 1)
    found.isDefined
  }

  /** @param order the row's number among all rows of the task */
  def dropped(candidate: C, order: Long): Unit = lastDropped = Some((candidate, order))

  /** The key's last row, if the output holds something else after it. */
  def takeStale(): Option[(C, Long)] = {
    val stale = if (diverged || isAtEnd) None else lastDropped
    lastDropped = None
    stale
  }

  private def versionsOf(candidate: C): Iterable[Int] =
    if (candidate.isIdentified) positions.getOrElse((candidate.source, candidate.row), Nil) else Nil
}
