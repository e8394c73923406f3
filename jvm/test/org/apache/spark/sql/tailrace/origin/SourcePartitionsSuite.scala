package org.apache.spark.sql.tailrace.origin

import org.apache.spark.sql.connector.read.InputPartition

class SourcePartitionsSuite extends munit.FunSuite {
  test("a table of partitions tells the sources apart") {
    val table = new SourcePartitions
    assertEquals(table.add(0, "a", partitions(2)), 0)
    assertEquals(table.add(1, "b", partitions(3)), 2)
    assertEquals(table.length, 5)
    assertEquals(table(1), SourcePartition(0, "a", 1))
    assertEquals(table(2), SourcePartition(1, "b", 0))
    assertEquals((0 until 5).map(table(_).source), Seq(0, 0, 1, 1, 1))
    assertEquals(table.get(5), None)
  }

  test("a source keeps its number, whatever is read before it") {
    val table = new SourcePartitions
    assertEquals(table.add(1, "b", partitions(1)), 0)
    assertEquals(table.add(0, "a", Nil), 1)
    assertEquals(table.add(2, "a", partitions(1)), 1)
    assertEquals((0 until 2).map(table(_)), Seq(SourcePartition(1, "b", 0), SourcePartition(2, "a", 0)))
  }

  test("the position of a row") {
    val table = new SourcePartitions
    table.add(0, "a", partitions(2))
    val current = new CurrentRow
    assertEquals(table.positionOf(current.keep()), null)
    current.partitionIndex = 1
    current.offset = 4
    assertEquals(table.positionOf(current.keep()), SourcePosition(SourcePartition(0, "a", 1), 4))
    current.forget()
    assertEquals(table.positionOf(current.keep()), null)
  }

  test("an origin is kept and restored") {
    val current = new CurrentRow
    current.partitionIndex = 1
    current.offset = 2
    current.path = 3
    current.recordedAt = 4
    current.readAt = 5
    current.enteredAt = 6
    current.weight = 7
    val kept = current.keep()
    val other = new CurrentRow
    other.restore(kept)
    assertEquals(
      (other.partitionIndex, other.offset, other.path, other.recordedAt, other.readAt, other.enteredAt, other.weight),
      (1, 2L, 3L, 4L, 5L, 6L, 7))
  }

  private def partitions(number: Int): Seq[InputPartition] = Seq.fill(number)(new InputPartition {})
}
