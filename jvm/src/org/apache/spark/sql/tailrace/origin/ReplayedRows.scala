package org.apache.spark.sql.tailrace.origin

/** A partition of one of the query's sources. Two sources may read the same topic. */
final case class SourceId(source: Int, topic: String, partition: Int)

/** A row as it leaves a shuffle: the record that it was made of, and which of that record's rows it is. */
final case class RowKey(place: SourceId, offset: Long, path: Long)

/** The rows of a repeated epoch that an earlier attempt has written. Read by tasks. */
trait ReplayedRows extends Serializable {
  /** The rows of a task, in the order in which it wrote them. A row may occur more than once. */
  def ofTask(task: Int): Iterator[RowKey]
}
