package org.apache.spark.sql.tailrace.sink.dedup

import scala.io.Source

import org.json4s.{DefaultFormats, Formats}
import org.json4s.jackson.Serialization

import org.apache.spark.sql.tailrace.origin.{RowId, SourcePartition}

/**
 * Answers replays with the decisions of a deduplicator, for the model in `tests/unit/sink`: one line of JSON in, one
 * line out.
 */
object AnswerReplays extends App {
  private implicit val formats: Formats = DefaultFormats

  final case class Row(
      madeByTime: Boolean,
      epoch: Long,
      expectsOthers: Boolean,
      source: Int,
      partition: Int,
      offset: Long,
      ordinal: Int,
      hasKey: Boolean,
      key: String,
      content: String,
      compacted: Boolean)

  final case class Written(row: Row, attempt: Int, task: Int, sequence: Long, at: Long)

  final case class Replay(
      stateful: Boolean,
      ordered: Boolean,
      sameQuery: Boolean,
      task: Int,
      epoch: Long,
      written: Seq[Written],
      rows: Seq[Row])

  private final case class Offered(asked: Row, number: Int) extends Candidate {
    override def source: SourcePartition = sourceOf(asked)
    override def row: RowId = rowOf(asked)
    override def expectsOthers: Boolean = asked.expectsOthers
    override def hasKey: Boolean = asked.hasKey
    override def keyHash: Long = keyOf(asked)
    override def contentHash: Long = contentOf(asked)
    override def contentId: ContentId = ContentId(contentHash, 0)
    override def isCompacted: Boolean = asked.compacted
  }

  private def answer(replay: Replay): String = {
    val strategy =
      if (replay.stateful) DeduplicationStrategy.StatefulByOrigin
      else DeduplicationStrategy.StatelessByOrigin(replay.ordered)
    val written = new WrittenRows(replay.written.map(writtenRow))
    val deduplicator = Deduplicator.byOrigin[Offered](strategy, written, replay.task, replay.epoch, replay.sameQuery)
    val decided = replay.rows.zipWithIndex.flatMap { case (row, number) =>
      deduplicator.offer(Offered(row, number)).map(describe(_, number + 1))
    }
    val finished = deduplicator.finish().map(describe(_, replay.rows.length))
    Serialization.write(Map("decided" -> decided, "finished" -> finished))
  }

  private def describe(decided: Decided[Offered], after: Int): Seq[Any] =
    Seq(decided.candidate.number, decided.decision.toString.toLowerCase, after, decided.ordinal)

  private def writtenRow(written: Written): WrittenRow = WrittenRow(
    sourceOf(written.row),
    rowOf(written.row),
    WriterMark("query", written.attempt, written.task, written.sequence),
    keyOf(written.row),
    contentOf(written.row),
    None,
    // Keys are in one partition each; which one does not matter.
    OutputPosition("out", 0, written.at))

  private def sourceOf(row: Row) =
    if (row.madeByTime) SourcePartition.madeByTime(row.partition) else SourcePartition(row.source, "in", row.partition)
  private def rowOf(row: Row) =
    if (row.madeByTime) RowId.madeByTime(row.epoch) else RowId(row.offset, 0, row.ordinal)
  private def keyOf(row: Row): Long = if (row.hasKey) row.key.hashCode else -1
  private def contentOf(row: Row): Long = (row.key, row.hasKey, row.content).hashCode

  Source.stdin.getLines().foreach(line => println(answer(Serialization.read[Replay](line))))
}
