package org.apache.spark.sql.tailrace.operators.session

import org.apache.spark.sql.catalyst.expressions.{Attribute, MutableProjection, NamedExpression, UnsafeRow}
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.execution.streaming.GenericBufferAggregationIterator

/**
 * Merges sessions into one. A session is a row of the keys, the window and the buffers of the aggregates. Spark's code
 * merges the aggregates; the iterator itself is not used.
 */
private[session] final class SessionMerger(
    partition: Int,
    grouping: Seq[NamedExpression],
    columns: Seq[Attribute],
    aggregates: Seq[AggregateExpression],
    aggregateAttributes: Seq[Attribute],
    results: Seq[NamedExpression],
    windowInGrouping: Int)
    extends GenericBufferAggregationIterator(
      partition,
      grouping,
      columns,
      aggregates,
      aggregateAttributes,
      grouping.length,
      results,
      (expressions, schema) => MutableProjection.create(expressions, schema)) {

  /** Merges sessions, ordered by start. The result is overwritten by the next call. */
  def merge(sessions: Seq[UnsafeRow], start: Long, end: Long): UnsafeRow = {
    val buffer = newAggregationBuffer()
    sessions.foreach(processRow(buffer, _))
    val group = groupingProjection(sessions.head)
    // Times have a fixed size, so the window can be changed in place.
    val window = group.getStruct(windowInGrouping, 2)
    window.setLong(0, start)
    window.setLong(1, end)
    generateOutput(group, buffer)
  }

  override def hasNext: Boolean = throw new UnsupportedOperationException
  override def next(): UnsafeRow = throw new UnsupportedOperationException
}
