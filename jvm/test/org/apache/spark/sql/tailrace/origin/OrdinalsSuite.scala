package org.apache.spark.sql.tailrace.origin

class OrdinalsSuite extends munit.FunSuite {
  test("the rows of a record are numbered, and each record starts anew") {
    val current = new CurrentRow
    val ordinals = new Ordinals(current)
    def next(partition: Int, offset: Long, path: Long = 0): Int = {
      current.partitionIndex = partition
      current.offset = offset
      current.path = path
      ordinals.next()
    }
    assertEquals(Seq(next(0, 5), next(0, 5), next(0, 5)), Seq(0, 1, 2))
    assertEquals(Seq(next(0, 6), next(1, 6), next(1, 6, path = 3), next(1, 6, path = 3)), Seq(0, 0, 0, 1))
  }

  test("paths of a record's rows differ, also after several shuffles") {
    val once = (0 until 100).map(Ordinals.extend(0, _))
    val twice = once.flatMap(path => (0 until 100).map(Ordinals.extend(path, _)))
    assertEquals((once ++ twice).distinct.length, 10100)
    assert(!once.contains(0L))
  }

  test("a path stays the same from release to release") {
    // Output records carry it: with another value, an upgraded query would not recognize the rows that it has written.
    assertEquals(Ordinals.extend(0L, 0), 0x910a2dec89025cc1L)
  }

  test("positions are described for users") {
    val partition = SourcePartition(0, "in", 0)
    val (first, second) = (SourcePosition(partition, 5), SourcePosition(partition, 9))
    assertEquals(SourcePosition.describe(Nil), "a record of unknown origin")
    assertEquals(SourcePosition.describe(Seq(null)), "a record of unknown origin")
    assertEquals(SourcePosition.describe(Seq(first, first)), "the record at topic 'in', partition 0, offset 5")
    assertEquals(
      SourcePosition.describe(Seq(second, first)),
      "one of 2 records: topic 'in', partition 0, offsets 5 to 9")
  }
}
