package org.apache.spark.sql.tailrace.sink.dedup

import scala.collection.mutable

/**
 * Recognises a replayed row by its content only. For matches of two streams: whichever of the two rows is read second
 * completes the match, so its origin can change from one replay to the next, but its content cannot. Matches with equal
 * content are interchangeable.
 *
 * @param written the rows in the output that this task is expected to replay; equal rows appear once each
 */
final class DeduplicateByContent[C <: Candidate](written: Seq[ContentId]) extends Deduplicator[C] {
  private val remaining = mutable.HashMap.empty[ContentId, Int]
  written.foreach(id => remaining.update(id, remaining.getOrElse(id, 0) + 1))

  override def offer(candidate: C): Seq[Decided[C]] =
    decide(candidate, if (take(candidate.contentId)) Decision.Drop else Decision.Write) :: Nil

  override def notReplayed: Seq[ContentId] =
    remaining.iterator.flatMap { case (id, count) => Iterator.fill(count)(id) }.toSeq

  private def take(id: ContentId): Boolean = remaining.get(id) match {
    case Some(1) =>
      remaining.remove(id)
      true
    case Some(count) =>
      remaining.update(id, count - 1)
      true
    case None => false
  }
}
