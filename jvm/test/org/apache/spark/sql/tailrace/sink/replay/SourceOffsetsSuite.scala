package org.apache.spark.sql.tailrace.sink.replay

import org.apache.spark.sql.tailrace.origin.SourcePartition

class SourceOffsetsSuite extends munit.FunSuite {
  private val (left, right) = (SourcePartition(0, "in", 0), SourcePartition(1, "in", 0))

  test("an epoch reads what is at or after its start offsets") {
    assert(SourceOffsets.anyAtOrAfter(Map(left -> 5L), Map(left -> 5L)))
    assert(!SourceOffsets.anyAtOrAfter(Map(left -> 4L), Map(left -> 5L)))
    assert(!SourceOffsets.anyAtOrAfter(Map.empty, Map(left -> 5L)))
  }

  test("two sources of one topic are at different offsets") {
    assert(!SourceOffsets.anyAtOrAfter(Map(left -> 4L), Map(left -> 5L, right -> 0L)))
    assert(SourceOffsets.anyAtOrAfter(Map(right -> 4L), Map(left -> 5L, right -> 0L)))
  }

  test("a partition that is not read any more is not waited for") {
    assert(!SourceOffsets.anyAtOrAfter(Map(left -> 4L), Map(right -> 0L)))
    val records = ReadableRecords(starts = Map(left -> 2L, right -> 0L), ends = Map(left -> 4L))
    assertEquals((1 to 5).map(offset => records.contain(left, offset)), Seq(false, true, true, true, false))
    // The source starts there, but Kafka does not have the partition.
    assert(!records.contain(right, 0))
    assert(!records.contain(SourcePartition(0, "in", 1), 3))
  }
}
