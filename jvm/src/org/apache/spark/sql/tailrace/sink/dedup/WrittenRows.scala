package org.apache.spark.sql.tailrace.sink.dedup

import org.apache.spark.sql.tailrace.origin.{RowId, SourcePartition}

/** Who wrote an output record, and in which order. `attempt` counts the runs that have worked on the open epoch. */
final case class WriterMark(query: String, attempt: Int, task: Int, sequence: Long)

/** A record that a read-back found in the output. */
final case class WrittenRow(
    source: SourcePartition,
    row: RowId,
    mark: WriterMark,
    keyHash: Long,
    contentHash: Long,
    contentId: Option[ContentId])

/**
 * The records of the open epoch that a read-back found in the output, in the order in which each task wrote them. Built
 * on the driver, or by a task that is retried; read by tasks.
 */
final class WrittenRows(rows: Seq[WrittenRow]) extends Serializable {
  private val ordered = rows.sortBy(row => (row.mark.attempt, row.mark.sequence)).toArray

  def isEmpty: Boolean = ordered.isEmpty
  def length: Int = ordered.length
  def ++(others: Seq[WrittenRow]): WrittenRows = new WrittenRows(ordered.toSeq ++ others)

  /** The number of runs that have written rows of the open epoch. */
  def attempts: Int = if (isEmpty) 0 else ordered.last.mark.attempt

  /** By topic and partition of the source, the last record that any row was made from. */
  lazy val lastOffsets: Map[(String, Int), Long] =
    ordered.groupMapReduce(row => (row.source.topic, row.source.partition))(_.row.offset)(_ max _)

  /** The rows that a task wrote, in its order. */
  def byTask(task: Int): Iterator[WrittenRow] = ordered.iterator.filter(_.mark.task == task)

  def bySource(source: SourcePartition): Iterator[WrittenRow] = ordered.iterator.filter(_.source == source)
}

object WrittenRows {
  val none: WrittenRows = new WrittenRows(Nil)
}
