package org.apache.spark.sql.tailrace.sink.kafka

import java.nio.charset.StandardCharsets.UTF_8

import scala.util.Try

import org.apache.kafka.common.header.Header
import org.apache.kafka.common.header.internals.RecordHeader

import org.apache.spark.sql.tailrace.origin.{RowId, SourcePartition}
import org.apache.spark.sql.tailrace.sink.dedup.{ContentId, WriterMark}

/**
 * The headers of an output record:
 *
 *  - `tailrace-source`: the record that the row was made from, as `topic/partition/offset`. If time made it:
 *    `time/task/epoch`, and source -1 in the next header.
 *  - `tailrace-row`: `query/source/path/ordinal/attempt/task/sequence`. The first four and `tailrace-source` identify
 *    the row; a replay gives it the same values.
 *  - `tailrace-content`: a match of two streams is identified by this digest of its content. Its other headers describe
 *    the row that completed it, which a replay can change. For consumers: a read-back computes it from the record.
 *  - `tailrace-mac`: the last one, a code that only the query can compute; see [[RecordMac]].
 *
 * Anyone who may write to the topic can write such headers. What cannot be read is another producer's record.
 */
object RowHeaders {
  val SourceKey = "tailrace-source"
  val RowKey = "tailrace-row"
  val ContentKey = "tailrace-content"
  val MacKey = "tailrace-mac"

  // Kafka's longest topic name and two numbers; six numbers and a query's id are shorter.
  private val MaxBytes = 300

  def source(source: SourcePartition, offset: Long): Header =
    new RecordHeader(SourceKey, sourceText(source, offset).getBytes(UTF_8))

  def row(source: SourcePartition, id: RowId, mark: WriterMark): Header =
    new RecordHeader(RowKey, rowText(source, id, mark).getBytes(UTF_8))

  private def sourceText(source: SourcePartition, offset: Long): String =
    s"${source.topic}/${source.partition}/$offset"

  private def rowText(source: SourcePartition, id: RowId, mark: WriterMark): String =
    new java.lang.StringBuilder(80)
      .append(mark.query).append('/').append(source.source)
      .append('/').append(java.lang.Long.toHexString(id.path)).append('/').append(id.ordinal)
      .append('/').append(mark.attempt).append('/').append(mark.task).append('/').append(mark.sequence).toString

  def content(id: ContentId): Header = new RecordHeader(ContentKey, id.toString.getBytes(UTF_8))

  def mac(code: String): Header = new RecordHeader(MacKey, code.getBytes(UTF_8))

  /** The position of a record's code among its headers; -1 if it has none. What stands behind it is not covered. */
  def macIndex(headers: Array[Header]): Int = headers.lastIndexWhere(_.key() == MacKey)

  def readMac(header: Header): Option[String] = text(header)

  /** The position of the first of our own headers. Those before it are the query's, whatever their names. */
  def identityIndex(headers: Array[Header]): Int = headers.lastIndexWhere(_.key() == SourceKey)

  /** None unless the headers are exactly as [[source]] and [[row]] write them: another producer wrote the record. */
  def read(headers: Array[Header]): Option[(SourcePartition, RowId, WriterMark)] =
    for {
      source <- last(headers, SourceKey).flatMap(text)
      row <- last(headers, RowKey).flatMap(text)
      read <- parse(source.split('/'), row.split('/'))
      if isValid(read) && sourceText(read._1, read._2.offset) == source && rowText(read._1, read._2, read._3) == row
    } yield read

  private def parse(source: Array[String], row: Array[String]): Option[(SourcePartition, RowId, WriterMark)] =
    (source, row) match {
      case (Array(topic, partition, offset), Array(query, number, path, ordinal, attempt, task, sequence)) =>
        Try {
          (
            SourcePartition(number.toInt, topic, partition.toInt),
            RowId(offset.toLong, java.lang.Long.parseUnsignedLong(path, 16), ordinal.toInt),
            WriterMark(query, attempt.toInt, task.toInt, sequence.toLong))
        }.toOption
      case _ => None
    }

  // A run numbers itself after the last attempt.
  private def isValid(read: (SourcePartition, RowId, WriterMark)): Boolean = {
    val (source, row, mark) = read
    val isOfRecord = source.partition >= 0 && row.offset >= 0 && row.ordinal >= 0
    (source.isMadeByTime || isOfRecord) && mark.attempt > 0 && mark.attempt < Int.MaxValue && mark.task >= 0 &&
    mark.sequence >= 0
  }

  private def last(headers: Array[Header], key: String): Option[Header] =
    headers.reverseIterator.find(_.key() == key)

  /** None if there is no value, or none that we could have written. */
  private def text(header: Header): Option[String] =
    Option(header.value()).filter(_.length <= MaxBytes).map(new String(_, UTF_8))
}
