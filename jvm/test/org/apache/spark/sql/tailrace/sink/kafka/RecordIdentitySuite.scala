package org.apache.spark.sql.tailrace.sink.kafka

import java.nio.charset.StandardCharsets.UTF_8

import org.apache.kafka.common.header.Header
import org.apache.kafka.common.header.internals.{RecordHeader, RecordHeaders}

import org.apache.spark.sql.tailrace.origin.{RowId, SourcePartition}
import org.apache.spark.sql.tailrace.sink.dedup.WriterMark

class RecordIdentitySuite extends munit.FunSuite {
  private val source = SourcePartition(1, "in", 3)
  private val row = RowId(42, -1, 2)
  private val mark = WriterMark("query", 4, 5, 6)

  test("a row's identity is read from the headers that it was written to") {
    assertEquals(RowHeaders.read(headers().toArray), Some((source, row, mark)))
  }

  test("the headers have the documented form") {
    assertEquals(text(RowHeaders.source(source, 42)), "in/3/42")
    assertEquals(text(RowHeaders.row(source, row, mark)), "query/1/ffffffffffffffff/2/4/5/6")
  }

  test("records of other producers have no identity") {
    assertEquals(RowHeaders.read(Array.empty), None)
    assertEquals(RowHeaders.read(Array(RowHeaders.source(source, 42))), None)
    val odd = new RecordHeader(RowHeaders.RowKey, "query/one/0/2/4/5/6".getBytes(UTF_8))
    assertEquals(RowHeaders.read(Array(RowHeaders.source(source, 42), odd)), None)
  }

  test("a header that the query copied from its input does not count") {
    val copied = RowHeaders.row(source, RowId(0, 0, 0), WriterMark("other", 1, 1, 1))
    val all = new RecordHeaders().add(copied)
    headers().forEach(header => all.add(header))
    assertEquals(RowHeaders.read(all.toArray).map(_._3.query), Some("query"))
  }

  test("headers that a row could not have written have no identity") {
    val odd = Seq(
      ("in/3/42", "query/1/0/2/4/5/-6"),
      ("in/3/42", "query/1/0/2/0/5/6"),
      ("in/3/42", s"query/1/0/2/${Int.MaxValue}/5/6"),
      ("in/3/42", "query/+1/0/2/4/5/6"),
      ("in/3/42", "query/1/00/2/4/5/6"),
      ("in/3/42", "query/1/0/2/4/5/6/"),
      ("in/3/42/", "query/1/0/2/4/5/6"),
      ("in/-3/42", "query/1/0/2/4/5/6"),
      ("in/3/-42", "query/1/0/2/4/5/6"),
      ("in/\u0663/42", "query/1/0/2/4/5/6"),
      (null, "query/1/0/2/4/5/6"),
      ("in/3/42", null))
    for ((source, row) <- odd) {
      val headers =
        Array[Header](
          new RecordHeader(RowHeaders.SourceKey, bytes(source)),
          new RecordHeader(RowHeaders.RowKey, bytes(row)))
      assertEquals(RowHeaders.read(headers), None, s"$source $row")
    }
  }

  test("each part of a record changes its content id") {
    val digest = new ContentDigest
    val records = Seq(
      record(),
      record(topic = "other"),
      record(partition = 0),
      record(key = null),
      record(key = ""),
      record(key = "k2"),
      record(value = null),
      record(value = "v2"),
      record(headers = Seq("h" -> "1")),
      record(headers = Seq("h" -> "2")),
      record(headers = Seq("h" -> "1", "h" -> "1")))
    assertEquals(records.map(digest.of).distinct.length, records.length)
    assertEquals(digest.of(record()), new ContentDigest().of(record()))
  }

  test("a content id stays the same from release to release") {
    // Ids are in output topics and in checkpoints. This one is the SHA-256 of the parts, each with its length before
    // it.
    assertEquals(new ContentDigest().of(record()).toString, "215b53e2098ad9809b415ffbf7621279")
  }

  test("bytes that move from one part to the next change the content id") {
    val digest = new ContentDigest
    assertNotEquals(digest.of(record(key = "ab", value = "c")), digest.of(record(key = "a", value = "bc")))
  }

  test("hashes tell topics, keys and values apart, and null from empty") {
    val keys = Seq("a" -> null, "a" -> "", "a" -> "k", "b" -> "k")
    val hashes = keys.map { case (topic, key) => RecordHashes.ofKey(topic, bytes(key)) }
    assertEquals(hashes.distinct.length, keys.length)
    val contents = Seq(null, "", "v").map(value => RecordHashes.ofContent(hashes.head, bytes(value)))
    assertEquals(contents.distinct.length, 3)
  }

  test("the later offset of each partition") {
    assertEquals(
      Offsets.later(
        Map("a" -> Map("0" -> 5L, "1" -> 1L)),
        Map("a" -> Map("0" -> 3L, "1" -> 2L), "b" -> Map("0" -> 9L))),
      Map("a" -> Map("0" -> 5L, "1" -> 2L), "b" -> Map("0" -> 9L)))
  }

  private def headers(): RecordHeaders = {
    val all = new RecordHeaders()
    all.add(RowHeaders.source(source, row.offset)).add(RowHeaders.row(source, row, mark))
    all
  }

  private def record(
      topic: String = "out",
      key: String = "k",
      value: String = "v",
      partition: Integer = null,
      headers: Seq[(String, String)] = Nil): OutputRecord = {
    val made = headers.map { case (name, text) => new RecordHeader(name, bytes(text)): Header }
    new OutputRecord(topic, bytes(key), bytes(value), partition, made.toArray)
  }

  private def bytes(text: String): Array[Byte] = if (text == null) null else text.getBytes(UTF_8)

  private def text(header: Header): String = new String(header.value(), UTF_8)
}
