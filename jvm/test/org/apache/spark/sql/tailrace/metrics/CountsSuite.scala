package org.apache.spark.sql.tailrace.metrics

import scala.collection.mutable

class CountsSuite extends munit.FunSuite {
  private val Longest = (1L << 36) - 1

  test("buckets follow each other without a gap, and none is wider than a percent") {
    val buckets = Buckets.indexOf(Longest)
    var next = 0L
    for (bucket <- 0 to buckets) {
      val highest = Buckets.highestOf(bucket)
      assertEquals(Buckets.indexOf(next), bucket)
      assertEquals(Buckets.indexOf(highest), bucket)
      assert(highest - next <= highest / 100, s"$bucket is from $next to $highest")
      next = highest + 1
    }
    assertEquals(next, Longest + 1)
  }

  test("what is out of range counts as the nearest that is in range") {
    assertEquals(Buckets.indexOf(-5), 0)
    assertEquals(Buckets.indexOf(Long.MaxValue), Buckets.indexOf(Longest))
  }

  test("counts add up by bucket") {
    val counts = new Counts
    counts.record(3, 1)
    counts.record(3, 4)
    counts.record(1000000, 2)
    assertEquals(all(counts.foreach), Map(3 -> 5L, Buckets.indexOf(1000000) -> 2L))
  }

  test("a series tells each duration once") {
    val series = new Series(SeriesKey("run", Figure.Stage, 0, "", 0))
    series.record(3, 2)
    assertEquals(all(series.foreachNew), Map(3 -> 2L))
    assertEquals(all(series.foreachNew), Map.empty[Int, Long])
    series.record(3, 1)
    series.record(9, 1)
    assertEquals(all(series.foreachNew), Map(3 -> 1L, 9 -> 1L))
    assertEquals(all(series.foreach), Map(3 -> 3L, 9 -> 1L))
  }

  private def all(foreach: ((Int, Long) => Unit) => Unit): Map[Int, Long] = {
    val found = mutable.HashMap.empty[Int, Long]
    foreach((bucket, count) => assertEquals(found.put(bucket, count), None, s"bucket $bucket was given twice"))
    found.toMap
  }
}
