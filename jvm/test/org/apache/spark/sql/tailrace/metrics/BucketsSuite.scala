package org.apache.spark.sql.tailrace.metrics

import java.nio.file.{Files, Path, Paths}

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}

/** Python is held to the same test vector. */
class BucketsSuite extends munit.FunSuite {
  private def vector: Path =
    Iterator.iterate(Paths.get("").toAbsolutePath)(_.getParent).map(_.resolve("tests/buckets.json")).find(Files.exists(
      _)).get

  private val durations: Seq[JsonNode] =
    new ObjectMapper().readTree(vector.toFile).get("durations").elements.asScala.toSeq

  test("every duration falls into its bucket") {
    durations.foreach { one =>
      assertEquals(Buckets.indexOf(one.get("micros").asLong), one.get("bucket").asInt, one.toString)
    }
  }

  test("a bucket ends with its longest duration") {
    durations.foreach { one =>
      assertEquals(Buckets.highestOf(one.get("bucket").asInt), one.get("highest_us").asLong, one.toString)
      assertEquals(Buckets.highestOf(one.get("bucket").asInt - 1) + 1, one.get("lowest_us").asLong, one.toString)
    }
  }

  test("counts are recorded in the same buckets") {
    val counts = new Counts
    counts.record(300, 2)
    counts.record(301, 3)
    var found = Map.empty[Int, Long]
    counts.foreach((bucket, count) => found += bucket -> count)
    assertEquals(found, Map(Buckets.indexOf(300) -> 5L))
  }
}
