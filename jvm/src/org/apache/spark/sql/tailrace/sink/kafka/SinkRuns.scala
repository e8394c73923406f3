package org.apache.spark.sql.tailrace.sink.kafka

import scala.collection.mutable

import org.apache.spark.SparkContext
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.util.SerializableConfiguration

/** On the driver: what a run of a query knows of its output. */
final class SinkRun(
    context: SparkContext,
    val log: OutputLog,
    val checkpoint: String,
    val hadoop: Broadcast[SerializableConfiguration],
    val attempt: Int,
    val readCommitted: Boolean,
    val compacted: Set[String],
    var beginnings: Map[String, Map[String, Long]],
    writtenBefore: WrittenRows,
    val matches: MatchesAhead) {
  private var ahead: Option[(Broadcast[WrittenRows], Map[(String, Int), Long])] = None
  found(writtenBefore)
  var lastExecutors: Map[Int, String] = Map.empty
  private var ends: Map[String, Map[String, Long]] = Map.empty

  /** This is in the topics since the beginnings, and some of it may come again. */
  def found(written: WrittenRows): Unit = {
    ahead.foreach(_._1.destroy())
    ahead = Option.when(!written.isEmpty)((context.broadcast(written), written.lastOffsets))
  }

  /** What was written already of the epochs to come, by older runs or by tasks that were lost; null if nothing of it can come again. */
  def written: Broadcast[WrittenRows] = ahead.map(_._1).orNull

  /** By partition of the source, the last record of which something was written already and may come again. */
  def lastWritten: Map[(String, Int), Long] = matches.lastWritten ++ ahead.fold(Map.empty[(String, Int), Long])(_._2)

  /** An epoch begins at these offsets. */
  def begins(starts: Map[(String, Int), Long]): Unit = {
    matches.begins(starts)
    ahead.foreach { case (broadcast, lastOffsets) =>
      if (!SinkRun.areBefore(lastOffsets, starts)) {
        ahead = None
        broadcast.destroy()
      }
    }
  }

  def ended(tasks: Seq[TaskEnd]): Unit = {
    lastExecutors ++= tasks.map(task => task.task -> task.executor)
    ends = tasks.foldLeft(ends)((all, task) => SinkRun.later(all, task.ends))
    matches.ended(tasks)
    // What was written ahead stands before what was written since, and would not be read.
    if (ahead.isEmpty) {
      beginnings = SinkRun.later(beginnings, ends)
    }
  }

  def forget(): Unit = {
    ahead.foreach(_._1.destroy())
    matches.forget()
    hadoop.destroy()
  }
}

object SinkRun {
  /** Whether there is a record that an epoch which begins there has still before it. */
  def areBefore(records: Map[(String, Int), Long], starts: Map[(String, Int), Long]): Boolean =
    records.exists { case (place, last) => starts.get(place).forall(_ <= last) }

  /** Each partition's later offset. */
  def later(
      some: Map[String, Map[String, Long]],
      others: Map[String, Map[String, Long]]): Map[String, Map[String, Long]] =
    others.foldLeft(some) { case (all, (topic, ends)) =>
      val known = all.getOrElse(topic, Map.empty)
      all.updated(
        topic,
        known ++ ends.map { case (partition, end) => partition -> math.max(end, known.getOrElse(partition, 0L)) })
    }
}

object SinkRuns {
  private val runs = mutable.HashMap.empty[String, SinkRun]

  def of(run: String)(begin: => SinkRun): SinkRun =
    synchronized(runs.get(run)).getOrElse {
      val begun = begin
      synchronized(runs.put(run, begun))
      begun
    }

  def forget(run: String): Unit = synchronized(runs.remove(run)).foreach(_.forget())
}
