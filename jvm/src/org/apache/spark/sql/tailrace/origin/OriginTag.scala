package org.apache.spark.sql.tailrace.origin

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.bitset.BitSetMethods

/**
 * A row's origin, written behind the row's own bytes for its way through a shuffle.
 *
 * A shuffle sends an `UnsafeRow` as so many bytes and looks at nothing but the columns that it partitions by. Bytes
 * behind the last column cost a row that has none of them nothing: neither a copy, as a column of its own would, nor
 * room on the wire. That a row is tagged is said by a bit of its null bit set that belongs to no column; where
 * there is no such bit, every row must be tagged.
 */
private[tailrace] final class OriginTag(columns: Int) {
  import OriginTag._

  private val tagged = new UnsafeRow(columns)
  private var buffer = new Array[Byte](0)

  /** The row and the origin together; it is used again for the next one. */
  def put(row: UnsafeRow, current: CurrentRow, path: Long, sentAt: Long): UnsafeRow = {
    val size = row.getSizeInBytes
    if (buffer.length < size + Bytes) {
      buffer = new Array[Byte](2 * (size + Bytes))
    }
    row.writeToMemory(buffer, Start)
    val tag = Start + size
    // The weight is beside the place: both are small.
    Platform.putLong(buffer, tag, (current.place.toLong << 32) | current.weight)
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

  /** Takes the origin off the row, and says when it was sent. */
  def take(row: UnsafeRow, current: CurrentRow): Long = {
    val (base, start, size) = (row.getBaseObject, row.getBaseOffset, row.getSizeInBytes - Bytes)
    val tag = start + size
    val placeAndWeight = Platform.getLong(base, tag)
    current.place = (placeAndWeight >> 32).toInt
    current.weight = placeAndWeight.toInt
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

  /** Null bits come in words. */
  def hasSpareBit(columns: Int): Boolean = columns % BitsPerWord != 0
}
