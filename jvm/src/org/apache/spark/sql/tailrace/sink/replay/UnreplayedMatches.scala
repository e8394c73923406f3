package org.apache.spark.sql.tailrace.sink.replay

import org.apache.spark.SparkContext
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.sql.tailrace.origin.SourcePartition
import org.apache.spark.sql.tailrace.sink.dedup.{ContentId, WrittenRow, WrittenRows}
import org.apache.spark.sql.tailrace.sink.replay.SourceOffsets.{NoSource, SourceOffsets}

/** Matches of a join that are in the output, by the task that wrote them. A replay makes them in the same task. */
final class MatchesByTask(byTask: Map[Int, Seq[ContentId]]) extends Serializable {
  def of(task: Int): Seq[ContentId] = byTask.getOrElse(task, Nil)
}

/**
 * The stored form of [[UnreplayedMatches]]. A sink keeps it as JSON: renaming a field breaks existing checkpoints.
 *
 * @param byTask        content ids by task
 * @param until         as an older version wrote it: like `untilBySource`, for all sources at once
 * @param untilBySource by number of the source, topic and partition, the last record that they can be replayed from
 */
final case class MatchesLeft(
    byTask: Map[String, Seq[String]],
    until: Map[String, Map[String, Long]],
    untilBySource: Option[Map[String, Map[String, Map[String, Long]]]] = None)

/**
 * Driver-side: the matches of a join that older runs wrote and that this run has not replayed yet.
 *
 * A match is replayed when both of its rows have been read. The output says where the row that completed it came from.
 * The other row was in its source too when the match was written, but its offset is unknown. So a match is replayed at
 * the latest when the run has read everything that was in the sources when it started; what is left then never will be.
 * Epochs may end before that, so a replayed match is removed at once: a later match may have equal content.
 *
 * @param until       by source partition, the last record that an older run can have read
 * @param completedBy by source partition, the last record that completed a match of the open epoch
 */
final class UnreplayedMatches(
    context: SparkContext,
    private var byTask: Map[Int, Seq[ContentId]],
    until: SourceOffsets,
    private var completedBy: SourceOffsets) {
  private var shared: Option[Broadcast[MatchesByTask]] = None
  share()

  /** For the tasks of the next epoch; none if nothing is left. */
  def broadcast: Option[Broadcast[MatchesByTask]] = shared

  /** The epoch must read up to these records, as it did when the matches were written. */
  def replayUntil: SourceOffsets = completedBy

  /** Forgets the matches if the epoch starts after the last record that they can be replayed from. */
  def startEpoch(starts: SourceOffsets): Unit = if (!SourceOffsets.anyAtOrAfter(until, starts)) {
    replace(Map.empty)
  }

  /** @param notReplayed by task that wrote a part of the epoch, the matches that it has not replayed */
  def commitEpoch(notReplayed: Map[Int, Seq[ContentId]]): Unit = {
    completedBy = NoSource
    replace((byTask ++ notReplayed).filter(_._2.nonEmpty))
  }

  /** For a run that has to continue from here. */
  def toLog: Option[MatchesLeft] = Option.when(byTask.nonEmpty) {
    MatchesLeft(
      byTask.map { case (task, ids) => task.toString -> ids.map(_.toString) },
      until = Map.empty,
      untilBySource = Some(until.groupBy(_._1.source.toString).map { case (source, lasts) =>
        source -> lasts.groupBy(_._1.topic).map { case (topic, offsets) =>
          topic -> offsets.map { case (at, last) => at.partition.toString -> last }
        }
      }))
  }

  def close(): Unit = replace(Map.empty)

  private def replace(matches: Map[Int, Seq[ContentId]]): Unit = if (matches.nonEmpty || byTask.nonEmpty) {
    byTask = matches
    shared.foreach(_.destroy())
    share()
  }

  private def share(): Unit = shared = Option.when(byTask.nonEmpty)(context.broadcast(new MatchesByTask(byTask)))
}

object UnreplayedMatches {
  def none(context: SparkContext): UnreplayedMatches = new UnreplayedMatches(context, Map.empty, NoSource, NoSource)

  /**
   * @param logged   what was left when the last epoch ended
   * @param readBack what was written in the open epoch
   * @param readable what the sources held when no older run read them any more
   */
  def of(
      context: SparkContext,
      logged: Option[MatchesLeft],
      readBack: Seq[WrittenRow],
      readable: => ReadableRecords): UnreplayedMatches = {
    val before = logged.toSeq.flatMap(_.byTask).map { case (task, ids) => task.toInt -> ids.flatMap(ContentId.parse) }
    val since = readBack.flatMap(row => row.contentId.map(row.mark.task -> _)).groupMap(_._1)(_._2)
    val byTask = (before ++ since).groupMap(_._1)(_._2).view.mapValues(_.flatten).toMap
    val until =
      if (byTask.isEmpty) NoSource
      else if (readBack.nonEmpty) readable.ends
      // The partitions that are still there.
      else readable.ends.flatMap { case (at, end) =>
        logged.flatMap(lastOf(_, at)).map(last => at -> math.min(last, end))
      }
    new UnreplayedMatches(context, byTask, until, new WrittenRows(readBack).lastOffsets)
  }

  private def lastOf(left: MatchesLeft, at: SourcePartition): Option[Long] =
    left.untilBySource.fold(left.until)(_.getOrElse(at.source.toString, Map.empty)).get(at.topic).flatMap(
      _.get(at.partition.toString))
}
