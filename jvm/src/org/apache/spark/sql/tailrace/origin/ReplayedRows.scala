package org.apache.spark.sql.tailrace.origin

/** A row as it leaves a shuffle: the record that it was made from, and which of that record's rows it is. */
final case class RowKey(source: SourcePartition, offset: Long, path: Long)

/** The rows of a replayed epoch that an earlier attempt has written. Read by tasks. */
trait ReplayedRows extends Serializable {
  /** The rows of a task, in the order in which it wrote them. A row may occur more than once. */
  def ofTask(task: Int): Iterator[RowKey]
}
