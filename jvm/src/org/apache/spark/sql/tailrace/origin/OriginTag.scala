package org.apache.spark.sql.tailrace.origin

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.bitset.BitSetMethods

/**
 * Appends a row's origin to the row's own bytes for its way through a shuffle.
 *
 * A shuffle sends an `UnsafeRow` as a block of bytes, and looks only at the columns that it partitions by. Unlike a
 * column of its own, a tag behind the last column costs an untagged row nothing: neither a copy nor bytes in the
 * shuffle. A bit of the null bit set that belongs to no column marks a tagged row. If there is no such bit, every row
 * must be tagged.
 */
private[tailrace] final class OriginTag(columns: Int) {
  import OriginTag._

  private val tagged = new UnsafeRow(columns)
  private var buffer = new Array[Byte](0)

  /** The row with its tag. The result is overwritten by the next call. */
  def put(row: UnsafeRow, current: CurrentRow, path: Long, sentAt: Long): UnsafeRow = {
    val size = row.getSizeInBytes
    if (buffer.length < size + Bytes) {
      buffer = new Array[Byte](2 * (size + Bytes))
    }
    row.writeToMemory(buffer, Start)
    val tag = Start + size
    // Both are small enough to share a word.
    Platform.putLong(buffer, tag, (current.partitionIndex.toLong << 32) | current.weight)
    Platform.putLong(buffer, tag + 8, current.offset)
    Platform.putLong(buffer, tag + 16, current.recordedAt)
    Platform.putLong(buffer, tag + 24, current.readAt)
    Platform.putLong(buffer, tag + 32, sentAt)
    Platform.putLong(buffer, tag + 40, path)
    tagged.pointTo(buffer, Start, size + Bytes)
    if (hasSpareBit(columns)) {
      BitSetMethods.set(buffer, Start, columns)
    }
    tagged
  }

  def isOn(row: UnsafeRow): Boolean =
    !hasSpareBit(columns) || BitSetMethods.isSet(row.getBaseObject, row.getBaseOffset, columns)

  /** Removes the tag from the row, sets the origin, and returns when the row was sent. */
  def take(row: UnsafeRow, current: CurrentRow): Long = {
    val (base, start, size) = (row.getBaseObject, row.getBaseOffset, row.getSizeInBytes - Bytes)
    val tag = start + size
    val partitionAndWeight = Platform.getLong(base, tag)
    current.partitionIndex = (partitionAndWeight >> 32).toInt
    current.weight = partitionAndWeight.toInt
    current.offset = Platform.getLong(base, tag + 8)
    current.recordedAt = Platform.getLong(base, tag + 16)
    current.readAt = Platform.getLong(base, tag + 24)
    current.path = Platform.getLong(base, tag + 40)
    if (hasSpareBit(columns)) {
      BitSetMethods.unset(base, start, columns)
    }
    row.pointTo(base, start, size)
    Platform.getLong(base, tag + 32)
  }
}

private[tailrace] object OriginTag {
  private val Bytes = 48
  private val Start = Platform.BYTE_ARRAY_OFFSET.toLong
  private val BitsPerWord = 64

  /** The null bit set is rounded up to whole words. */
  def hasSpareBit(columns: Int): Boolean = columns % BitsPerWord != 0
}
