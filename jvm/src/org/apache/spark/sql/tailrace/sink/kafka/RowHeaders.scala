package org.apache.spark.sql.tailrace.sink.kafka

import java.nio.charset.StandardCharsets.UTF_8

import scala.util.Try

import org.apache.kafka.common.header.{Header, Headers}
import org.apache.kafka.common.header.internals.RecordHeader

import org.apache.spark.sql.tailrace.origin.SourceId

/** Which row of a record: `path` tells rows apart that a shuffle has scattered, `ordinal` those that follow each other. */
final case class RowId(offset: Long, path: Long, ordinal: Int)

/** By whom and in which order an output record was written; `attempt` counts the runs that worked on the open epoch. */
final case class WriterMark(query: String, attempt: Int, task: Int, sequence: Long)

/**
 * What is written into the headers of an output record:
 *
 *  - `tailrace-source`: the record that it was made of, as `topic/partition/offset`.
 *  - `tailrace-row`: `query/source/path/ordinal/attempt/task/sequence`. Together with the former, the first four are
 *    the row's identity, the same whenever it is computed again.
 *  - `tailrace-content`: of a match of two streams, whose identity is its content. What else is said of it is where the row came
 *    from that completed it, which may be the other one another time.
 */
object RowHeaders {
  val SourceKey = "tailrace-source"
  val RowKey = "tailrace-row"
  val ContentKey = "tailrace-content"

  def source(place: SourceId, offset: Long): Header =
    new RecordHeader(SourceKey, s"${place.topic}/${place.partition}/$offset".getBytes(UTF_8))

  def row(place: SourceId, id: RowId, mark: WriterMark): Header = {
    val text = new java.lang.StringBuilder(80)
      .append(mark.query).append('/').append(place.source)
      .append('/').append(java.lang.Long.toHexString(id.path)).append('/').append(id.ordinal)
      .append('/').append(mark.attempt).append('/').append(mark.task).append('/').append(mark.sequence)
    new RecordHeader(RowKey, text.toString.getBytes(UTF_8))
  }

  def content(id: ContentId): Header = new RecordHeader(ContentKey, id.toString.getBytes(UTF_8))

  def readContent(headers: Headers): Option[ContentId] =
    Option(headers.lastHeader(ContentKey)).map(text).flatMap(ContentId.parse)

  /** None if the record was written by somebody else. */
  def read(headers: Headers): Option[(SourceId, RowId, WriterMark)] =
    for {
      source <- Option(headers.lastHeader(SourceKey)).map(text)
      row <- Option(headers.lastHeader(RowKey)).map(text)
      read <- parse(source.split('/'), row.split('/'))
    } yield read

  private def parse(source: Array[String], row: Array[String]): Option[(SourceId, RowId, WriterMark)] =
    (source, row) match {
      case (Array(topic, partition, offset), Array(query, number, path, ordinal, attempt, task, sequence)) =>
        Try {
          (
            SourceId(number.toInt, topic, partition.toInt),
            RowId(offset.toLong, java.lang.Long.parseUnsignedLong(path, 16), ordinal.toInt),
            WriterMark(query, attempt.toInt, task.toInt, sequence.toLong))
        }.toOption
      case _ => None
    }

  private def text(header: Header): String = new String(header.value(), UTF_8)
}
