package org.apache.spark.sql.tailrace.operators.session

import org.apache.spark.sql.catalyst.expressions.{Attribute, UnsafeRow}

/** Reads the start and the end of a row's session, in microseconds. */
private[session] final class WindowColumn(window: Attribute, columns: Seq[Attribute]) {
  private val ordinal = columns.indexWhere(_.exprId == window.exprId)

  def startOf(session: UnsafeRow): Long = session.getStruct(ordinal, 2).getLong(0)
  def endOf(session: UnsafeRow): Long = session.getStruct(ordinal, 2).getLong(1)
}
