package org.apache.spark.sql.tailrace.sink.dedup

import scala.collection.mutable

import org.apache.spark.sql.tailrace.origin.SourcePartition

/**
 * For queries without state. A replay makes the same number of rows from a record, but not always in the same order, so
 * the rows of a record are matched by content. Rows with new content (a random number, the current time) are held back
 * until the record's last row: as many of them are dropped as the output has unmatched rows of the record. A row that
 * is written again keeps the ordinal that it has in the output, and a new one gets an ordinal that is free. So an
 * ordinal always stands for one row, and the output's last record with it for the row's latest version.
 *
 * The rows of a source partition are made in its order. If a row is written although a later one of its key is in the
 * output, the later ones are written again. Otherwise a consumer would take an old row for the key's latest.
 *
 * @param isOrdered   true if rows of a source partition reach the task in their order
 * @param isSameQuery false if another query wrote the rows. Then only rows with equal content are dropped: what another
 *                    query made of a record does not stand for what this one makes of it
 */
final class DeduplicateStateless[C <: Candidate](written: WrittenRows, isOrdered: Boolean, isSameQuery: Boolean)
    extends Deduplicator[C] {
  private final class HeldBack(val candidate: C, val matched: Option[RecordRow])

  private val bySource = mutable.HashMap.empty[SourcePartition, SourceRows]
  private val heldBack = mutable.Queue.empty[HeldBack]
  private val diverged = mutable.HashSet.empty[(SourcePartition, Long)]
  private lazy val keys = written.keys

  override def offer(candidate: C): Seq[Decided[C]] =
    if (candidate.isMadeByTime) decide(candidate, Decision.Write) :: Nil
    else {
      val ofLastRecord = if (heldBack.nonEmpty && !isOfSameRecord(heldBack.head.candidate, candidate)) finish() else Nil
      ofLastRecord ++ compare(candidate)
    }

  override def finish(): Seq[Decided[C]] = heldBack.dequeueAll(_ => true).map { held =>
    val rows = rowsOf(held.candidate).of(held.candidate.row)
    held.matched.orElse(if (isSameQuery) rows.takeAny() else None) match {
      case Some(row) => decide(held.candidate, dropOrCorrect(held.candidate, row), row.ordinal)
      case None => missing(held.candidate, rows)
    }
  }

  private def compare(candidate: C): Seq[Decided[C]] = {
    val rows = rowsOf(candidate).of(candidate.row)
    if (rows.isEmpty && heldBack.isEmpty) {
      missing(candidate, rows) :: Nil
    } else {
      heldBack.enqueue(new HeldBack(candidate, rows.takeContent(candidate.contentHash)))
      // With nothing left to match, the other rows of the record are not in the output.
      if (rows.isEmpty) finish() else Nil
    }
  }

  private def missing(candidate: C, rows: RecordRows): Decided[C] =
    decide(candidate, dropOrWrite(candidate), rows.freeOrdinal(candidate.row.ordinal))

  private def dropOrCorrect(candidate: C, row: RecordRow): Decision = {
    if (isOrdered && candidate.hasKey && !row.isInOrder) {
      diverge(candidate)
    }
    if (diverged((candidate.source, candidate.keyHash))) Decision.Correct else Decision.Drop
  }

  private def dropOrWrite(candidate: C): Decision =
    if (mayBeCompactedAway(candidate)) Decision.Drop
    else {
      if (isOrdered && candidate.hasKey && rowsOf(candidate).hasLater(candidate.row.offset, candidate.keyHash)) {
        diverge(candidate)
      }
      Decision.Write
    }

  /**
   * True if the row may have been in the output until Kafka removed it in favour of another record of its key. It is
   * not written again, because it would hide that record.
   */
  private def mayBeCompactedAway(candidate: C): Boolean =
    candidate.isCompacted && keys(candidate.keyHash) && rowsOf(candidate).lastOffset >= candidate.row.offset

  private def diverge(candidate: C): Unit = diverged += ((candidate.source, candidate.keyHash))

  // Built on first use: a task sees rows of few partitions.
  private def rowsOf(candidate: C): SourceRows =
    bySource.getOrElseUpdate(candidate.source, new SourceRows(written.bySource(candidate.source).toArray))

  private def isOfSameRecord(one: C, other: C): Boolean =
    one.source == other.source && one.row.offset == other.row.offset && one.row.path == other.row.path
}
