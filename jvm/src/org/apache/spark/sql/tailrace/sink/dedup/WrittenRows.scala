package org.apache.spark.sql.tailrace.sink.dedup

import org.apache.spark.sql.tailrace.origin.{RowId, SourcePartition}

/**
 * Who wrote an output record, and in which order. `attempt` counts the runs that have worked on the open epoch.
 * `sequence` grows with each record that a task writes, over its retries as well.
 */
final case class WriterMark(query: String, attempt: Int, task: Int, sequence: Long)

/** Where a record is in its output topic. */
final case class OutputPosition(topic: String, partition: Int, offset: Long)

/** A record that a read-back found in the output. */
final case class WrittenRow(
    source: SourcePartition,
    row: RowId,
    mark: WriterMark,
    keyHash: Long,
    contentHash: Long,
    contentId: Option[ContentId],
    at: OutputPosition)

/**
 * The records of the open epoch that a read-back found in the output, in the order in which each task wrote them. Built
 * on the driver, or by a task that is retried; read by tasks.
 */
final class WrittenRows(rows: Seq[WrittenRow]) extends Serializable {
  private val ordered = WrittenRows.inOrderOfWriting(rows).toArray

  def isEmpty: Boolean = ordered.isEmpty
  def length: Int = ordered.length

  /** Both; what they have in common is taken once. */
  def ++(others: Seq[WrittenRow]): WrittenRows = new WrittenRows((ordered.toSeq ++ others).distinctBy(_.at))

  /** The number of runs that have written rows of the open epoch. */
  def attempts: Int = if (isEmpty) 0 else ordered.last.mark.attempt

  /** True if time has made some of the rows in this epoch. */
  def hasRowsMadeByTime(epoch: Long): Boolean =
    ordered.exists(found => found.source.isMadeByTime && found.row == RowId.madeByTime(epoch))

  /** By source partition, the last record that any row was made from. */
  lazy val lastOffsets: Map[SourcePartition, Long] =
    ordered.filterNot(_.source.isMadeByTime).groupMapReduce(_.source)(_.row.offset)(_ max _)

  /** The rows that a task wrote, in its order. */
  def byTask(task: Int): Iterator[WrittenRow] = ordered.iterator.filter(_.mark.task == task)

  def bySource(source: SourcePartition): Iterator[WrittenRow] = ordered.iterator.filter(_.source == source)

  /** The keys of which the output holds a record. */
  lazy val keys: Set[Long] = ordered.iterator.map(_.keyHash).toSet

  /** By source partition, the last record that the task made a row from. */
  private[dedup] def newestOffsetsOf(task: Int): Map[SourcePartition, Long] =
    byTask(task).filterNot(_.source.isMadeByTime).toSeq.groupMapReduce(_.source)(_.row.offset)(_ max _)

  /** By key, the rows that a task wrote, as a consumer reads them. */
  private[dedup] def historiesOf(task: Int): Map[Long, Array[WrittenRow]] = WrittenRows.histories(byTask(task))
}

object WrittenRows {
  val none: WrittenRows = new WrittenRows(Nil)

  private[sink] def inOrderOfWriting(rows: Seq[WrittenRow]): Seq[WrittenRow] =
    rows.sortBy(row => (row.mark.attempt, row.mark.sequence))

  /** By key, the rows in the order of the topic. They are given in the order of writing. */
  private[sink] def histories(rows: Iterator[WrittenRow]): Map[Long, Array[WrittenRow]] =
    rows.toArray.groupBy(_.keyHash).map { case (key, ofKey) => key -> inTopicOrder(ofKey) }

  /**
   * Records of a key are in one partition, unless the query names partitions or the topic got more of them. Then only
   * the order of writing is known.
   */
  private def inTopicOrder(rows: Array[WrittenRow]): Array[WrittenRow] =
    if (rows.forall(_.at.partition == rows.head.at.partition)) rows.sortBy(_.at.offset) else rows
}
