package org.apache.spark.sql.tailrace.sink.kafka

import java.nio.charset.StandardCharsets.UTF_8
import java.util.Optional

import scala.concurrent.duration._
import scala.util.Random

import org.apache.kafka.clients.consumer.ConsumerRecord
import org.apache.kafka.common.header.Header
import org.apache.kafka.common.header.internals.{RecordHeader, RecordHeaders}
import org.apache.kafka.common.record.TimestampType

import org.apache.spark.sql.tailrace.origin.{RowId, SourcePartition}
import org.apache.spark.sql.tailrace.sink.dedup.{WriterMark, WrittenRow}

class OwnRecordsSuite extends munit.FunSuite {
  // Hundreds of thousands of inputs, on a machine that may do much else.
  override val munitTimeout: Duration = 3.minutes

  private val secret = SinkSecret.random()
  private val source = SourcePartition(1, "in", 3)
  private val row = RowId(42, -1, 2)
  private val mark = WriterMark("query", 4, 5, 6)
  private val identity = Array(RowHeaders.source(source, row.offset), RowHeaders.row(source, row, mark))

  test("a row is read from the record that it was written to") {
    val found = own().read(written())
    assertEquals(found.map(one => (one.source, one.row, one.mark)), Some((source, row, mark)))
  }

  test("the code stays the same from release to release") {
    val known = SinkSecret.parse("0b" * 32).get
    assertEquals(new RecordMac(known).of(output()), "fbf1fd3ab0c93394e17bbbe90baf4b74")
  }

  test("a record that differs from the written one in any part is foreign") {
    val genuine = written()
    val headers = genuine.headers().toArray
    val changed = Seq(
      record(genuine, topic = "other"),
      record(genuine, key = bytes("k2")),
      record(genuine, key = null),
      record(genuine, value = bytes("v2")),
      record(genuine, value = null),
      record(genuine, headers = headers.drop(1)),
      record(genuine, headers = new RecordHeader("mine", null) +: headers.drop(1)),
      record(genuine, headers = headers.patch(1, Seq(RowHeaders.source(source, 43)), 1)),
      record(genuine, headers = headers.patch(2, Seq(RowHeaders.row(source, row.copy(ordinal = 3), mark)), 1)),
      record(genuine, headers = headers.dropRight(1)),
      record(genuine, headers = headers.dropRight(1) :+ RowHeaders.mac("0" * 32)),
      record(genuine, headers = headers.dropRight(1) :+ RowHeaders.mac("")),
      record(genuine, headers = headers.dropRight(1) :+ new RecordHeader(RowHeaders.MacKey, null)),
      record(genuine, headers = headers :+ RowHeaders.mac("0" * 32)))
    changed.foreach(one => assertEquals(own().read(one), None))
    assert(own().read(genuine).isDefined)
  }

  test("records of another query, or of a checkpoint with another secret, are foreign") {
    assertEquals(new OwnRecords("other", secret, byContent = false).read(written()), None)
    assertEquals(new OwnRecords("query", SinkSecret.random(), byContent = false).read(written()), None)
  }

  test("a partition that the row names is authentic, and the one that Kafka chose may be any") {
    assert(own().read(record(written(partition = 7), partition = 7)).isDefined)
    assertEquals(own().read(record(written(partition = 7), partition = 8)), None)
    assert(own().read(record(written(), partition = 8)).isDefined)
  }

  test("headers behind the code change nothing") {
    val before = own().read(written())
    val traced = record(
      written(),
      headers = written().headers().toArray ++ Seq(
        new RecordHeader("traceparent", bytes("00-1")): Header,
        RowHeaders.source(source, 1000),
        RowHeaders.row(source, row, mark.copy(attempt = 100))))
    assertEquals(own().read(traced), before)
  }

  test("the content is that of the record, whatever a header says") {
    val digest = new ContentDigest
    for (partition <- Seq[Integer](null, 7)) {
      val lies = Array[Header](RowHeaders.content(digest.of(output(value = "other"))))
      val found = own(byContent = true).read(record(written(partition, lies), partition = 7))
      assertEquals(found.flatMap(_.contentId), Some(digest.of(output(partition = partition))))
    }
  }

  test("a copy of a match is no second match, and an equal match is one") {
    val all = own(byContent = true)
    val first = written()
    val copied = record(first, partition = 1)
    val equal = written(mark = mark.copy(sequence = 7))
    val ids = Seq(first, copied, equal).flatMap(all.read(_)).map(_.contentId)
    assertEquals(ids.map(_.isDefined), Seq(true, false, true))
    assertEquals(ids.flatten.distinct.length, 1)
  }

  test("no header, however odd, is more than a foreign record") {
    val random = new Random(18)
    val all = own(byContent = true)
    val genuine = written()
    var accepted = 0
    for (round <- 1 to 200000) {
      val headers = Array.fill[Header](random.nextInt(6))(oddHeader(random))
      val headersRead = RowHeaders.read(headers)
      headersRead.foreach { case (source, row, mark) =>
        accepted += 1
        assertEquals(
          text(headers, RowHeaders.SourceKey),
          new String(RowHeaders.source(source, row.offset).value(), UTF_8))
        assertEquals(text(headers, RowHeaders.RowKey), new String(RowHeaders.row(source, row, mark).value(), UTF_8))
      }
      val found: Option[WrittenRow] = all.read(record(genuine, headers = headers))
      assertEquals(found, None, s"round $round")
    }
    assert(accepted > 100, s"only $accepted inputs were well-formed")
  }

  test("a genuine record is recognized among odd headers, and not if one of its bits is changed") {
    val random = new Random(19)
    val all = own()
    val genuine = written()
    val headers = genuine.headers().toArray
    for (_ <- 1 to 20000) {
      val odd = Array.fill[Header](random.nextInt(3))(oddHeader(random)).filterNot(_.key() == RowHeaders.MacKey)
      assert(all.read(record(genuine, headers = headers ++ odd)).isDefined)
      val at = random.nextInt(headers.length)
      val bits = headers(at).value().clone()
      val changed = random.nextInt(bits.length)
      bits(changed) = (bits(changed) ^ (1 << random.nextInt(8))).toByte
      val flipped = headers.updated(at, new RecordHeader(headers(at).key(), bits): Header)
      assertEquals(all.read(record(genuine, headers = flipped)), None)
    }
  }

  test("a row that was made by time is read as well") {
    val found = own().read(madeByTime(sequence = 0))
    assertEquals(found.map(one => (one.source, one.row)), Some((time, RowId.madeByTime(8))))
  }

  test("a copy of a row that was made by time is no second row, and an equal row is one") {
    val all = own()
    val first = madeByTime(sequence = 0)
    val found = Seq(first, record(first, partition = 1), madeByTime(sequence = 1)).flatMap(all.read(_))
    assertEquals(found.map(_.row == RowId.madeByTime(8)), Seq(true, false, true))
  }

  private val time = SourcePartition.madeByTime(3)

  private def madeByTime(sequence: Long): ConsumerRecord[Array[Byte], Array[Byte]] = {
    val id = RowId.madeByTime(8)
    written(
      output(),
      Array(RowHeaders.source(time, id.offset), RowHeaders.row(time, id, mark.copy(sequence = sequence))))
  }

  private val names = Seq(RowHeaders.SourceKey, RowHeaders.RowKey, RowHeaders.ContentKey, RowHeaders.MacKey, "", "x")
  private val pieces = Seq(
    "in",
    "query",
    "/",
    "//",
    "0",
    "1",
    "-1",
    "+1",
    "42",
    "ffffffffffffffff",
    "\u0663",
    "2147483647",
    "2147483648",
    "9223372036854775808",
    "NaN",
    " ",
    "\u0000",
    "1e3",
    "0x1",
    "")

  private def oddHeader(random: Random): Header = {
    val value = random.nextInt(8) match {
      case 0 => null
      case 1 => random.nextBytes(random.nextInt(40))
      case 2 => bytes("/" * random.nextInt(5000))
      case 3 => bytes(Seq.fill(3)(piece(random)).mkString("/"))
      case 4 => bytes(Seq.fill(7)(piece(random)).mkString("/"))
      case 5 => RowHeaders.source(source, random.nextLong() >>> 1).value()
      case 6 => RowHeaders.row(source, RowId(0, random.nextLong(), 1), mark.copy(sequence = random.nextInt(9))).value()
      case 7 => bytes("0123456789abcdef" * random.nextInt(4))
    }
    new RecordHeader(names(random.nextInt(names.length)), value)
  }

  private def piece(random: Random): String = pieces(random.nextInt(pieces.length))

  private def own(byContent: Boolean = false) = new OwnRecords("query", secret, byContent)

  private def output(value: String = "v", partition: Integer = null): OutputRecord =
    new OutputRecord("out", bytes("k"), bytes(value), partition, Array(new RecordHeader("mine", bytes("1"))))

  /** As the sink writes it. */
  private def written(
      partition: Integer = null,
      more: Array[Header] = Array.empty,
      mark: WriterMark = mark): ConsumerRecord[Array[Byte], Array[Byte]] = {
    val rowOfMark = Array(identity.head, RowHeaders.row(source, row, mark))
    written(output(partition = partition), rowOfMark ++ more)
  }

  private def written(record: OutputRecord, own: Array[Header]): ConsumerRecord[Array[Byte], Array[Byte]] = {
    val headers = record.headers ++ own
    val code = new RecordMac(secret).of(record.withHeaders(headers))
    consumed("out", 0, record.key, record.value, headers :+ RowHeaders.mac(code))
  }

  private def record(
      of: ConsumerRecord[Array[Byte], Array[Byte]],
      topic: String = "out",
      partition: Int = 0,
      key: Array[Byte] = bytes("k"),
      value: Array[Byte] = bytes("v"),
      headers: Array[Header] = null): ConsumerRecord[Array[Byte], Array[Byte]] =
    consumed(topic, partition, key, value, Option(headers).getOrElse(of.headers().toArray))

  private def consumed(
      topic: String,
      partition: Int,
      key: Array[Byte],
      value: Array[Byte],
      headers: Array[Header]): ConsumerRecord[Array[Byte], Array[Byte]] =
    new ConsumerRecord[Array[Byte], Array[Byte]](
      topic,
      partition,
      0L,
      0L,
      TimestampType.CREATE_TIME,
      0,
      0,
      key,
      value,
      new RecordHeaders(headers),
      Optional.empty[Integer])

  private def text(headers: Array[Header], key: String): String =
    new String(headers.filter(_.key() == key).last.value(), UTF_8)

  private def bytes(text: String): Array[Byte] = if (text == null) null else text.getBytes(UTF_8)
}
