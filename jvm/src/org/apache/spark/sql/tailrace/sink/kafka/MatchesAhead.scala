package org.apache.spark.sql.tailrace.sink.kafka

import scala.collection.mutable

import org.apache.spark.SparkContext
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.sql.tailrace.sink.kafka.MatchesAhead.LastRecords

/** Matches of a join that are in the output, by the task that wrote them; the same task makes them again. */
final class WrittenMatches(byTask: Map[Int, Seq[ContentId]]) extends Serializable {
  def of(task: Int): Seq[ContentId] = byTask.getOrElse(task, Nil)
}

/** In a task: those that are still to come again. As many of them are found as there are, and no more. */
final class MatchLookup(written: Seq[ContentId]) {
  private val counts = mutable.HashMap.empty[ContentId, Int]
  written.foreach(id => counts.update(id, counts.getOrElse(id, 0) + 1))

  /** Whether one is there. */
  def take(id: ContentId): Boolean = counts.get(id) match {
    case Some(1) =>
      counts.remove(id)
      true
    case Some(number) =>
      counts.update(id, number - 1)
      true
    case None => false
  }

  def left: Seq[ContentId] = counts.iterator.flatMap { case (id, number) => Iterator.fill(number)(id) }.toSeq
}

/**
 * On the driver: the matches that older runs have written and that have not come again yet.
 *
 * A match comes when both of its rows have been read. Which one came second the output says; the other one was in its source as
 * well when the older run wrote the match, but nobody knows where. So all have come, or never will, when everything
 * has been read that was in the sources at the beginning of this run. Epochs may end before that: a match that has come
 * is crossed off, since another one that is like it may follow.
 *
 * @param until       by partition of a source, the last record that an older run can have read
 * @param completedBy by partition of a source, the last record that is known to have completed a match
 */
final class MatchesAhead(
    context: SparkContext,
    private var byTask: Map[Int, Seq[ContentId]],
    until: LastRecords,
    private var completedBy: LastRecords) {
  private var shared: Option[Broadcast[WrittenMatches]] = None
  share()

  /** Null if there are none. */
  def written: Broadcast[WrittenMatches] = shared.orNull

  /** The epoch is to last until these have been read, as it did then. */
  def lastWritten: LastRecords = completedBy

  /** An epoch begins at these offsets. */
  def begins(starts: LastRecords): Unit = if (!SinkRun.areBefore(until, starts)) {
    replace(Map.empty)
  }

  def ended(tasks: Seq[TaskEnd]): Unit = {
    completedBy = Map.empty
    replace((byTask ++ tasks.map(end => end.task -> end.matchesLeft)).filter(_._2.nonEmpty))
  }

  /** For a run that has to go on from here. */
  def toLog: Option[MatchesLeft] = Option.when(byTask.nonEmpty) {
    MatchesLeft(
      byTask.map { case (task, ids) => task.toString -> ids.map(_.toString) },
      until.groupMap(_._1._1) { case ((_, partition), last) => partition.toString -> last }.view.mapValues(
        _.toMap).toMap)
  }

  def forget(): Unit = replace(Map.empty)

  private def replace(matches: Map[Int, Seq[ContentId]]): Unit = if (matches.nonEmpty || byTask.nonEmpty) {
    byTask = matches
    shared.foreach(_.destroy())
    share()
  }

  private def share(): Unit = shared = Option.when(byTask.nonEmpty)(context.broadcast(new WrittenMatches(byTask)))
}

object MatchesAhead {
  /** By topic and partition, an offset. */
  type LastRecords = Map[(String, Int), Long]

  def none(context: SparkContext): MatchesAhead = new MatchesAhead(context, Map.empty, Map.empty, Map.empty)

  /**
   * @param left     what was left of them when the last epoch ended
   * @param readBack what was written in the one that is open
   * @param ends     of the sources, now that no older run reads them any more
   */
  def of(
      context: SparkContext,
      left: Option[MatchesLeft],
      readBack: Seq[WrittenRow],
      ends: => LastRecords): MatchesAhead = {
    val before = left.toSeq.flatMap(_.byTask).map { case (task, ids) => task.toInt -> ids.flatMap(ContentId.parse) }
    val since = readBack.flatMap(row => row.contentId.map(row.mark.task -> _)).groupMap(_._1)(_._2)
    val byTask = (before ++ since).groupMap(_._1)(_._2).view.mapValues(_.flatten).toMap
    val known = left.toSeq.flatMap(_.until).flatMap { case (topic, lasts) =>
      lasts.map { case (partition, last) => (topic, partition.toInt) -> last }
    }
    val until = if (readBack.isEmpty) known else known ++ ends
    new MatchesAhead(context, byTask, until.groupMapReduce(_._1)(_._2)(_ max _), new WrittenRows(readBack).lastOffsets)
  }
}
