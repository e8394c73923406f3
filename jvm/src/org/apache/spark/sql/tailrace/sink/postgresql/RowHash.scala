package org.apache.spark.sql.tailrace.sink.postgresql

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Expression, UnsafeProjection, XXH64}
import org.apache.spark.sql.types.StructType

/** Hashes rows, or some of their columns. Equal values have equal bytes. Not for several threads. */
private[postgresql] final class RowHash private (project: UnsafeProjection) {
  def this(columns: Seq[Expression]) = this(UnsafeProjection.create(columns))

  def this(schema: StructType) = this(UnsafeProjection.create(schema))

  /** Of the last row that was hashed, in bytes. */
  var size: Int = 0

  def hash(row: InternalRow, seed: Long): Long = {
    val bytes = project(row)
    size = bytes.getSizeInBytes
    XXH64.hashUnsafeBytes(bytes.getBaseObject, bytes.getBaseOffset, size, seed)
  }
}
