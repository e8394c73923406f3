package org.apache.spark.sql.tailrace.sink.dedup

import scala.collection.mutable
import scala.collection.Searching.InsertionPoint

import org.apache.spark.sql.tailrace.origin.{RowId, SourcePartition}

/**
 * For queries with state. What a stateful operator makes of a record depends on the rows before it, and a replay may
 * bring them in another order. So a row is recognized by its origin and its content, and the order counts as well: the
 * last record of a key in the output must be the last row that the operator makes for it.
 *
 * The output holds a list of records for each key. While the epoch is replayed, a pointer moves forward through that
 * list. A row that equals a record at the pointer or after it is dropped, and the pointer moves past that record. At
 * the first row that does not, the key has diverged: that row and all later ones of the key are written. If a key has
 * not diverged by the end of the epoch, but another row than its last one is at the end of the list, a consumer would
 * take that one for the latest: the key's last row is written again.
 *
 * Rows without a key have no latest one. Each of them takes an equal record from the list, wherever it is.
 *
 * Rows made by time have no origin; equal content in the same epoch is enough. That is sound because each record of the
 * output stands for one row only: however many equal rows a replay makes, as many of them are in the output in the end.
 * They come late, when the rows that made the next records of the key have perhaps been replayed with another result.
 * If no such row is expected any more, only records after all of those count. Otherwise a consumer would have to wait
 * for the end of the epoch to see the row as the latest.
 *
 * A replay reads in seconds what took minutes, so the next record of the key may arrive before the timer fires, and the
 * processor may make of that record what the timer made before. So a row of a record is also recognized by a row that
 * time has made in the same epoch and that has the same content. The ordinals of the record's other rows change with
 * that, so they are not compared.
 *
 * @param written what the output holds of the epoch
 * @param task    this task: it replays what it wrote in earlier attempts
 * @param epoch   the epoch that is written
 */
final class DeduplicateStateful[C <: Candidate](written: WrittenRows, task: Int, epoch: Long) extends Deduplicator[C] {
  private val byTime = RecordId(SourcePartition.madeByTime(task), RowId.madeByTime(epoch))
  private val histories =
    written.historiesOf(task).map { case (key, records) => key -> new KeyHistory[C](records, byTime) }
  private lazy val withoutKey = new UnorderedRows(written.byTask(task), byTime)
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
      rewrite(candidate, history.hasVersionOf(candidate))
    } else if (history.advance(candidate) || mayBeCompactedAway(candidate, history)) {
      history.dropped(candidate, offered)
      Decision.Drop
    } else {
      history.diverge()
      rewrite(candidate, history.hasVersionOf(candidate))
    }

  private def compareAlone(candidate: C): Decision =
    if (withoutKey.take(candidate)) Decision.Drop else rewrite(candidate, withoutKey.hasVersionOf(candidate))

  private def rewrite(candidate: C, hasVersion: Boolean): Decision =
    if (hasVersion && !candidate.isMadeByTime) Decision.Correct else Decision.Write

  /**
   * True if the row may have been in the output until Kafka removed it in favour of a later record. It is not written
   * again, because it would hide that record.
   */
  private def mayBeCompactedAway(candidate: C, history: KeyHistory[C]): Boolean =
    candidate.isCompacted && !candidate.isMadeByTime && !history.isAtEnd && !history.hasVersionOf(candidate) &&
      newestOffsets.get(candidate.source).exists(_ >= candidate.row.offset)

  override def finish(): Seq[Decided[C]] = histories.valuesIterator.flatMap(_.takeStale()).toSeq.sortBy(_._2).map {
    case (candidate, _) => decide(candidate, Decision.Correct)
  }
}

/** What a row was made from: a record on its way through the shuffles, or the time of an epoch. */
private final case class RecordId(source: SourcePartition, offset: Long, path: Long)

private object RecordId {
  def apply(source: SourcePartition, row: RowId): RecordId = RecordId(source, row.offset, row.path)
  def of(candidate: Candidate): RecordId = RecordId(candidate.source, candidate.row)
  def of(written: WrittenRow): RecordId = RecordId(written.source, written.row)
}

/**
 * The records of a key in the order of the topic, and how far a replay has got in them.
 *
 * @param byTime of rows that time has made in the epoch
 */
private[dedup] final class KeyHistory[C <: Candidate](records: Array[WrittenRow], byTime: RecordId) {
  private var next = 0
  private var diverged = false
  private var lastDropped: Option[(C, Long)] = None
  // Not needed as long as the rows come in the order of the records.
  private lazy val positions = {
    val found = mutable.HashMap.empty[(RecordId, Long), mutable.ArrayBuffer[Int]]
    records.indices.foreach { position =>
      val record = records(position)
      found.getOrElseUpdate((RecordId.of(record), record.contentHash), mutable.ArrayBuffer.empty) += position
    }
    found
  }
  /** From here on all records were made by time, in the epoch of the last one. */
  private lazy val timeTail =
    records.lastIndexWhere(record => !record.source.isMadeByTime || record.row != records.last.row) + 1
  private lazy val versions = records.iterator.map(record => (record.source, record.row)).toSet

  def hasDiverged: Boolean = diverged

  def diverge(): Unit = diverged = true

  def isAtEnd: Boolean = next == records.length

  def hasVersionOf(candidate: C): Boolean = versions((candidate.source, candidate.row))

  /** Moves past the first record from the pointer on that equals the row; false if there is none. */
  def advance(candidate: C): Boolean = {
    val found =
      if (isAtEnd) None
      else if (candidate.isMadeByTime) {
        firstFrom(if (candidate.expectsOthers) next else math.max(next, timeTail), RecordId.of(candidate), candidate)
      } else if (isSame(records(next), candidate)) Some(next)
      else firstFrom(next, RecordId.of(candidate), candidate).orElse(firstFrom(next, byTime, candidate))
    found.foreach(position => next = position + 1)
    found.isDefined
  }

  private def firstFrom(start: Int, from: RecordId, candidate: C): Option[Int] =
    positions.get((from, candidate.contentHash)).flatMap { equal =>
      equal.search(start) match {
        case InsertionPoint(behind) => equal.lift(behind)
        case _ => Some(start)
      }
    }

  private def isSame(record: WrittenRow, candidate: C): Boolean =
    record.contentHash == candidate.contentHash && RecordId.of(record) == RecordId.of(candidate)

  /** True if a consumer who reads the record as the last one of the key knows the row. */
  private def stands(record: WrittenRow, candidate: C): Boolean =
    isSame(record, candidate) ||
      (record.contentHash == candidate.contentHash && RecordId.of(record) == byTime && !candidate.isMadeByTime)

  /** @param order the row's number among all rows of the task */
  def dropped(candidate: C, order: Long): Unit = lastDropped = Some((candidate, order))

  /** The key's last row, if the output holds something else after it. */
  def takeStale(): Option[(C, Long)] = {
    val stale = if (diverged || isAtEnd) None else lastDropped.filterNot(last => stands(records.last, last._1))
    lastDropped = None
    stale
  }
}

/** Records whose order does not count. */
private[dedup] final class UnorderedRows(records: Iterator[WrittenRow], byTime: RecordId) {
  private val versions = mutable.HashSet.empty[(SourcePartition, RowId)]
  private val left = mutable.HashMap.empty[(RecordId, Long), Int]
  records.foreach { record =>
    versions += ((record.source, record.row))
    left.updateWith((RecordId.of(record), record.contentHash))(count => Some(count.getOrElse(0) + 1))
  }

  def hasVersionOf(candidate: Candidate): Boolean = versions((candidate.source, candidate.row))

  /** Takes a record that equals the row; false if none is left. */
  def take(candidate: Candidate): Boolean =
    takeFrom(RecordId.of(candidate), candidate) || (!candidate.isMadeByTime && takeFrom(byTime, candidate))

  private def takeFrom(from: RecordId, candidate: Candidate): Boolean = {
    val row = (from, candidate.contentHash)
    val isLeft = left.getOrElse(row, 0) > 0
    if (isLeft) {
      left.updateWith(row)(_.map(_ - 1))
    }
    isLeft
  }
}
