package org.apache.spark.sql.tailrace.operators.python

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.types.DataTypeUtils
import org.apache.spark.sql.types.StructType

/**
 * The columns of a grouped input in Python's order: the keys that are not among the data, then the data.
 *
 * @param offsets in PySpark's encoding: their number, the number of keys, the indexes of the keys and those of the data
 */
private[python] final case class GroupedColumns(columns: Seq[Attribute], offsets: Array[Int]) {
  def schema: StructType = DataTypeUtils.fromAttributes(columns)
}

private[python] object GroupedColumns {

  /** Spark puts the keys before the user's columns. */
  def of(keys: Seq[Attribute], columns: Seq[Attribute]): GroupedColumns = {
    val data = columns.drop(keys.length)
    val all = keys.filterNot(key => data.exists(_.semanticEquals(key))) ++ data
    val keyOffsets = keys.map(key => all.indexWhere(_.semanticEquals(key)))
    val indexes = keyOffsets ++ (all.length - data.length until all.length)
    GroupedColumns(all, (Seq(indexes.length + 1, keys.length) ++ indexes).toArray)
  }
}
