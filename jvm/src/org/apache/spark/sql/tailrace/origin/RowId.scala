package org.apache.spark.sql.tailrace.origin

/**
 * One of the rows that were made from a record. `path` tells rows apart that went through a shuffle, `ordinal` those
 * that follow each other in a task. Together with its [[SourcePartition]] it identifies a row: a replay gives it the
 * same id.
 */
final case class RowId(offset: Long, path: Long, ordinal: Int)

object RowId {

  /** All rows that time makes in an epoch have the same id. They are told apart by their content. */
  def madeByTime(epoch: Long): RowId = RowId(epoch, 0, 0)
}
