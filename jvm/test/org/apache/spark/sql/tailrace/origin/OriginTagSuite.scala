package org.apache.spark.sql.tailrace.origin

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BoundReference, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.types.{DataType, LongType, StringType}
import org.apache.spark.unsafe.types.UTF8String

class OriginTagSuite extends munit.FunSuite {
  test("a tag is taken off the row that it was put on") {
    val row = rowOf(3)
    val tag = new OriginTag(3)
    val tagged = tag.put(row, origin(), path = 9, sentAt = 77)
    assert(tag.isOn(tagged))
    assert(tagged.getSizeInBytes > row.getSizeInBytes)

    val received = copyOf(tagged)
    val current = new CurrentRow
    assertEquals(tag.take(received, current), 77L)
    assertEquals(received, row)
    assertEquals(
      (current.partitionIndex, current.offset, current.path, current.recordedAt, current.readAt, current.weight),
      (5, 1L << 40, 9L, 11L, 12L, 100))
  }

  test("an untagged row is recognized if a null bit is free") {
    assert(!new OriginTag(3).isOn(rowOf(3)))
  }

  test("64 columns leave no null bit free, so every row counts as tagged") {
    assert(OriginTag.hasSpareBit(63))
    assert(!OriginTag.hasSpareBit(64))
    assert(OriginTag.hasSpareBit(65))
    val row = rowOf(64)
    val tag = new OriginTag(64)
    val received = copyOf(tag.put(row, origin(), path = 0, sentAt = 1))
    assert(tag.isOn(received))
    tag.take(received, new CurrentRow)
    assertEquals(received, row)
  }

  test("an unknown origin stays unknown") {
    val tag = new OriginTag(1)
    val received = copyOf(tag.put(rowOf(1), new CurrentRow, path = 0, sentAt = CurrentRow.Unknown))
    val current = origin()
    tag.take(received, current)
    assertEquals(
      (current.partitionIndex, current.offset, current.weight),
      (CurrentRow.UnknownPartition, CurrentRow.Unknown, 0))
  }

  test("the buffer grows with the rows") {
    val tag = new OriginTag(1)
    for (length <- Seq(1, 10000, 5)) {
      val row = text("x" * length)
      val received = copyOf(tag.put(row, origin(), path = 0, sentAt = 0))
      tag.take(received, new CurrentRow)
      assertEquals(received, row)
    }
  }

  private def origin(): CurrentRow = {
    val current = new CurrentRow
    current.restore(new Origin(5, 1L << 40, 0, 11, 12, 13, 100, expectsRows = false))
    current
  }

  // As a shuffle does: the bytes are all that arrives.
  private def copyOf(row: UnsafeRow): UnsafeRow = {
    val bytes = row.getBytes.clone()
    val copy = new UnsafeRow(row.numFields)
    copy.pointTo(bytes, bytes.length)
    copy
  }

  private def rowOf(columns: Int): UnsafeRow =
    unsafe(Seq.fill(columns)(LongType), InternalRow.fromSeq(Seq.tabulate(columns)(_.toLong)))

  private def text(value: String): UnsafeRow = unsafe(Seq(StringType), InternalRow(UTF8String.fromString(value)))

  private def unsafe(types: Seq[DataType], row: InternalRow): UnsafeRow =
    UnsafeProjection.create(types.zipWithIndex.map { case (dataType, ordinal) =>
      BoundReference(ordinal, dataType, nullable = true)
    })(row).copy()
}
