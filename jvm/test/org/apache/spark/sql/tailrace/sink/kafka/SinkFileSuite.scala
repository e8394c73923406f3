package org.apache.spark.sql.tailrace.sink.kafka

import java.nio.charset.StandardCharsets.UTF_8

import scala.concurrent.duration._
import scala.util.Random

import org.apache.spark.sql.tailrace.sink.replay.MatchesLeft

/** The files are in the checkpoint, where anything can have happened to them. */
class SinkFileSuite extends munit.FunSuite {
  import SinkFileSuite._

  // Many thousands of inputs, on a machine that may do much else.
  override val munitTimeout: Duration = 3.minutes

  test("what was written is read") {
    assertEquals(SinkFile.epochEnd(text(end)), Some(end))
    assertEquals(SinkFile.topicStart(text(start)), Some(start))
    assertEquals(SinkFile.writers(text(Writers(3))), Some(Writers(3)))
    assertEquals(SinkFile.owner(text(Owner("run"))), Some(Owner("run")))
    assertEquals(SinkFile.openEpoch(text(open)), Some(open))
  }

  test("offsets are read as numbers of the right type") {
    // Equality does not tell a BigInt from a Long; arithmetic does.
    val read = SinkFile.epochEnd(text(end)).get
    val offsets: Seq[Long] = Seq(read.ends("out")("0"), read.matchesLeft.get.untilBySource.get("1")("in")("0"))
    assertEquals(offsets.sum, 21L)
    assertEquals(SinkFile.topicStart(text(start)).get.offsets("0") + 1L, 4L)
  }

  test("what an older version has written is read") {
    assertEquals(SinkFile.epochEnd("v1\n{\"ends\":{\"out\":{\"0\":5}}}"), Some(EpochEnd(Map("out" -> Map("0" -> 5L)))))
    assertEquals(SinkFile.topicStart("v1\n{\"0\":5}"), Some(TopicStart(Map("0" -> 5L), TopicIds.Unknown)))
  }

  test("what makes no sense is not read") {
    val noEnds = Seq(
      "",
      "v1",
      "v1\n",
      "v1\nnull",
      "v1\n[]",
      "v2\n{\"ends\":{}}",
      "v1\n{\"ends\":{\"out\":{\"first\":5}}}",
      "v1\n{\"ends\":{\"out\":{\"0\":-5}}}",
      "v1\n{\"ends\":{\"out\":{\"0\":\"five\"}}}",
      "v1\n{\"ends\":{},\"matchesLeft\":{\"byTask\":{\"x\":[]},\"until\":{}}}",
      "v1\n{\"ends\":{},\"matchesLeft\":{\"byTask\":{\"0\":[\"zz\"]},\"until\":{}}}",
      "v1\n" + "[" * 100000)
    noEnds.foreach(text => assertEquals(SinkFile.epochEnd(text), None, text.take(100)))
    assertEquals(SinkFile.owner("v1\n{}"), None)
    assertEquals(SinkFile.owner("v1\n{\"run\":null}"), None)
    assertEquals(SinkFile.writers("v1\n{\"number\":-1}"), None)
    assertEquals(SinkFile.openEpoch("v1\n{\"epoch\":-1,\"queries\":[]}"), None)
    assertEquals(SinkFile.openEpoch("v1\n{\"epoch\":1,\"queries\":[null]}"), None)
  }

  test("whatever stands in a file, it is read or refused, and what was read can be used") {
    val random = new Random(18)
    val samples = Seq(end, start, Writers(3), Owner("run"), open, EpochEnd(Map.empty)).map(text).toIndexedSeq
    var accepted = 0
    for (number <- 1 to Inputs) {
      val input = damage(samples(random.nextInt(samples.length)), random)
      try {
        val readers = Seq(
          SinkFile.epochEnd(input).map(use),
          SinkFile.topicStart(input).map(start => start.offsets.values.sum + start.id.length),
          SinkFile.writers(input).map(_.number + 1),
          SinkFile.owner(input).map(_.run.length),
          SinkFile.openEpoch(input).map(open => open.epoch + open.queries.map(_.length).sum))
        accepted += readers.count(_.isDefined)
      } catch {
        case failure: Throwable => fail(s"input $number: $input", failure)
      }
    }
    // Some damage is harmless. If all input were refused, nothing would have been tested.
    assert(accepted > Inputs / 100, accepted)
  }
}

object SinkFileSuite {
  private val Inputs = 100000
  private val Id = "0123456789abcdef0123456789abcdef"
  private val Tokens = IndexedSeq(
    "null",
    "{}",
    "[]",
    "\"",
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "-1",
    "1.5",
    "1e999",
    "9" * 30,
    "true",
    "\\u0000",
    "\n",
    "\"0\":",
    "\"ends\":",
    "\"out\"",
    "v1",
    "v2",
    0xd800.toChar.toString,
    "\u0000")

  private val end = EpochEnd(
    Map("out" -> Map("0" -> 12L, "1" -> 0L)),
    Some(MatchesLeft(Map("0" -> Seq(Id)), Map.empty, Some(Map("1" -> Map("in" -> Map("0" -> 9L)))))),
    Map("out" -> "an id"),
    Seq("a query"))
  private val start = TopicStart(Map("0" -> 3L), "an id")
  private val open = OpenEpoch(4, Seq("one query", "another"))

  private def text(content: AnyRef): String = new String(SinkFile.write(content), UTF_8)

  /** As the sink uses it at the start of a run. */
  private def use(end: EpochEnd): Long = {
    val left = end.matchesLeft.toSeq
    val numbers = end.ends.values.flatMap(_.map { case (partition, offset) => partition.toInt + offset }) ++
      left.flatMap(_.byTask).map { case (task, ids) => task.toInt.toLong + ids.map(_.length).sum } ++
      left.flatMap(_.until.values).flatMap(_.values) ++
      left.flatMap(_.untilBySource).flatMap(_.values).flatMap(_.values).flatMap(_.values)
    numbers.sum + end.topicIds.values.map(_.length).sum + end.queries.map(_.length).sum
  }

  private def damage(text: String, random: Random): String =
    (0 to random.nextInt(4)).foldLeft(text) { (changed, _) =>
      val at = random.nextInt(changed.length + 1)
      val (before, after) = changed.splitAt(at)
      random.nextInt(6) match {
        case 0 => before
        case 1 => before + after.drop(1 + random.nextInt(5))
        case 2 => before + Tokens(random.nextInt(Tokens.length)) + after
        case 3 => before + Tokens(random.nextInt(Tokens.length)) + after.drop(1 + random.nextInt(12))
        case 4 => before + random.nextPrintableChar() + after.drop(1)
        case _ => before + after + before.takeRight(random.nextInt(30))
      }
    }
}
