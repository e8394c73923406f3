package org.apache.spark.sql.tailrace.sink.dedup

import scala.collection.mutable

/**
 * Recognises a replayed row by its origin: the record that it was made from, and which of that record's rows it is.
 *
 * Once a key has diverged, which means that one of its rows was written although a later one is in the output, all rows
 * of the key are written again. Otherwise a consumer would take an old row for the key's latest.
 */
abstract class DeduplicateByOrigin[C <: Candidate](index: WrittenRowIndex) extends Deduplicator[C] {
  private val diverged = mutable.HashSet.empty[Long]

  protected final def writtenRowsOf(candidate: C): RecordRows = index.rowsOf(candidate.source, candidate.row)

  protected final def diverge(candidate: C): Unit = diverged += candidate.keyHash

  protected final def dropOrCorrect(candidate: C): Decided[C] =
    decide(candidate, if (diverged.contains(candidate.keyHash)) Decision.Correct else Decision.Drop)

  /**
   * Kafka may have compacted the row away. If a later row of its key is still there, that one must be written again.
   */
  protected final def writeMissing(candidate: C): Decided[C] = {
    if (candidate.isCompacted && index.hasLater(candidate.source, candidate.row.offset, candidate.keyHash)) {
      diverge(candidate)
    }
    decide(candidate, Decision.Write)
  }
}

/**
 * For queries with state. What a stateful operator makes of a record depends on the rows before it, and a replay may
 * bring them in another order. A row whose content differs from the one in the output is written again, and so are all
 * later rows of its key.
 */
final class DeduplicateStateful[C <: Candidate](index: WrittenRowIndex) extends DeduplicateByOrigin[C](index) {

  override def offer(candidate: C): Seq[Decided[C]] = {
    val decided = writtenRowsOf(candidate).takeOrdinal(candidate.row.ordinal) match {
      case None => writeMissing(candidate)
      case Some(contentHash) =>
        if (contentHash != candidate.contentHash) {
          diverge(candidate)
        }
        dropOrCorrect(candidate)
    }
    decided :: Nil
  }
}

/**
 * For queries without state. A replay makes the same number of rows from a record, but not always in the same order, so
 * the rows of a record are matched by content. Rows with new content (a random number, the current time) are held back
 * until the record's last row: as many of them are dropped as the output has unmatched rows of the record.
 */
final class DeduplicateStateless[C <: Candidate](index: WrittenRowIndex) extends DeduplicateByOrigin[C](index) {
  private val heldBack = mutable.Queue.empty[C]

  override def offer(candidate: C): Seq[Decided[C]] = {
    val ofLastRecord = if (heldBack.nonEmpty && !isOfSameRecord(heldBack.head, candidate)) finish() else Nil
    ofLastRecord ++ compare(candidate)
  }

  override def finish(): Seq[Decided[C]] = heldBack.dequeueAll(_ => true).map { candidate =>
    if (writtenRowsOf(candidate).takeAny()) dropOrCorrect(candidate) else decide(candidate, Decision.Write)
  }

  private def compare(candidate: C): Seq[Decided[C]] = {
    val written = writtenRowsOf(candidate)
    if (written.isEmpty) {
      writeMissing(candidate) :: Nil
    } else if (written.takeContent(candidate.contentHash)) {
      val decided = dropOrCorrect(candidate)
      if (written.isEmpty) decided +: finish() else decided :: Nil
    } else {
      heldBack.enqueue(candidate)
      Nil
    }
  }

  private def isOfSameRecord(one: C, other: C): Boolean =
    one.source == other.source && one.row.offset == other.row.offset && one.row.path == other.row.path
}
