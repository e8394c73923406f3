package org.apache.spark.sql.tailrace.sink.kafka

import java.nio.charset.StandardCharsets.UTF_8

import scala.util.Try

import org.apache.kafka.common.header.{Header, Headers}
import org.apache.kafka.common.header.internals.RecordHeader

import org.apache.spark.sql.tailrace.origin.{RowId, SourcePartition}
import org.apache.spark.sql.tailrace.sink.dedup.{ContentId, WriterMark}

/**
 * The headers of an output record:
 *
 *  - `tailrace-source`: the record that the row was made from, as `topic/partition/offset`.
 *  - `tailrace-row`: `query/source/path/ordinal/attempt/task/sequence`. The first four and `tailrace-source` identify
 *    the row; a replay gives it the same values.
 *  - `tailrace-content`: a match of two streams is identified by this digest of its content. Its other headers describe
 *    the row that completed it, which a replay can change.
 */
object RowHeaders {
  val SourceKey = "tailrace-source"
  val RowKey = "tailrace-row"
  val ContentKey = "tailrace-content"

  def source(source: SourcePartition, offset: Long): Header =
    new RecordHeader(SourceKey, s"${source.topic}/${source.partition}/$offset".getBytes(UTF_8))

  def row(source: SourcePartition, id: RowId, mark: WriterMark): Header = {
    val text = new java.lang.StringBuilder(80)
      .append(mark.query).append('/').append(source.source)
      .append('/').append(java.lang.Long.toHexString(id.path)).append('/').append(id.ordinal)
      .append('/').append(mark.attempt).append('/').append(mark.task).append('/').append(mark.sequence)
    new RecordHeader(RowKey, text.toString.getBytes(UTF_8))
  }

  def content(id: ContentId): Header = new RecordHeader(ContentKey, id.toString.getBytes(UTF_8))

  def readContent(headers: Headers): Option[ContentId] =
    Option(headers.lastHeader(ContentKey)).map(text).flatMap(ContentId.parse)

  /** None if another producer wrote the record. */
  def read(headers: Headers): Option[(SourcePartition, RowId, WriterMark)] =
    for {
      source <- Option(headers.lastHeader(SourceKey)).map(text)
      row <- Option(headers.lastHeader(RowKey)).map(text)
      read <- parse(source.split('/'), row.split('/'))
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

  private def text(header: Header): String = new String(header.value(), UTF_8)
}
