package org.apache.spark.sql.tailrace.sink.kafka

import scala.collection.mutable

import org.apache.spark.SparkContext
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.sql.tailrace.origin.{ReplayedRows, RowKey}
import org.apache.spark.sql.tailrace.sink.dedup.WrittenRows
import org.apache.spark.sql.tailrace.sink.kafka.Offsets.OutputOffsets
import org.apache.spark.sql.tailrace.sink.replay.{QueriesOfEpoch, ReadableRecords, SourceOffsets, UnreplayedMatches}
import org.apache.spark.sql.tailrace.sink.replay.SourceOffsets.{NoSource, SourceOffsets}

/**
 * Driver-side: what the sink remembers from epoch to epoch during a run.
 *
 * @param attempt         see [[WriterIdentity]]
 * @param compactedTopics see [[ReplayContext]]
 * @param readBackAtStart where and how to read back, when the run starts
 * @param readUntil       where the run's read-back ended
 * @param topicIdsAtStart by topic, see [[TopicIds]]
 * @param queries         the queries that wrote what the run's read-back found
 * @param rowsAtStart     what the run's read-back found, if rows are recognized by origin
 * @param untilAtStart    by source partition, the last record of which any of these rows can be replayed
 * @param matches         what the run's read-back found, if rows are recognized by content
 */
final class SinkRun(
    context: SparkContext,
    val log: OutputLog,
    val attempt: Int,
    val compactedTopics: Set[String],
    readBackAtStart: ReadBackContext,
    readUntil: OutputOffsets,
    topicIdsAtStart: Map[String, String],
    val queries: QueriesOfEpoch,
    rowsAtStart: WrittenRows,
    untilAtStart: SourceOffsets,
    val matches: UnreplayedMatches) {
  private var currentReadBack = readBackAtStart
  private var unreplayed: Option[(Broadcast[WrittenRows], SourceOffsets)] = None
  private var isReadBackOld = false
  private var executors: Map[Int, String] = Map.empty
  private var topicIds = topicIdsAtStart
  // Once everything has been replayed that was read back, the next run need not read it again.
  private var ends: OutputOffsets = readUntil
  replaceRows(rowsAtStart, untilAtStart)

  def readBack: ReadBackContext = currentReadBack

  /** By task, the executor that wrote its part of the last epoch. */
  def lastExecutors: Map[Int, String] = executors

  /** The rows that the output holds of the epochs to come; none if all of them have been replayed. */
  def rows: Option[Broadcast[WrittenRows]] = unreplayed.map(_._1)

  /** By source partition, the last record of which the output already holds a row that will be replayed. */
  def replayUntil: SourceOffsets = matches.replayUntil ++ unreplayed.fold(NoSource)(_._2)

  /** What an epoch with these start offsets replays of [[rows]]. */
  def rowsToReplay(starts: SourceOffsets): Option[ReplayedRows] =
    unreplayed.map { case (rows, until) => RowsToReplay(rows, ReadableRecords(starts, until)) }

  /**
   * Sets what the output holds since the start offsets of the read-back.
   *
   * @param until by source partition, the last record of which any of these rows can be replayed
   */
  def replaceRows(rows: WrittenRows, until: SourceOffsets): Unit = {
    unreplayed.foreach(_._1.destroy())
    unreplayed = Option.when(!rows.isEmpty)((context.broadcast(rows), until))
    isReadBackOld = false
  }

  /**
   * Forgets what cannot be replayed by this epoch, which has these start offsets.
   *
   * @param readBack what the output holds now. Used if an epoch of this run ended before everything was replayed: the
   *                 next one must know what was written meanwhile, and in which order
   */
  def startEpoch(epoch: Long, starts: SourceOffsets, readBack: => WrittenRows): Unit = {
    matches.startEpoch(starts)
    unreplayed.foreach { case (broadcast, until) =>
      if (!SourceOffsets.anyAtOrAfter(until, starts) && !broadcast.value.hasRowsMadeByTime(epoch)) {
        unreplayed = None
        broadcast.destroy()
      } else if (isReadBackOld) {
        replaceRows(readBack, until)
      }
    }
  }

  def commitEpoch(tasks: Seq[TaskCommit]): Unit = {
    executors ++= tasks.map(task => task.task -> task.executor)
    ends = tasks.foldLeft(ends)((all, task) => Offsets.later(all, task.ends))
    matches.commitEpoch(tasks.map(commit => commit.task -> commit.notReplayed).toMap)
    // After a retry, the rows have just been read back.
    isReadBackOld = !tasks.exists(_.isRetry)
    // Rows that are still to be replayed stand before those of this epoch, and a new run must read them again.
    if (unreplayed.isEmpty) {
      currentReadBack = currentReadBack.copy(starts = Offsets.later(currentReadBack.starts, ends))
    }
  }

  /** Where the output ends after the last committed epoch. */
  def epochEnd: EpochEnd = {
    val starts = currentReadBack.starts
    // The tasks have added topics that only the rows name.
    if (!starts.keySet.subsetOf(topicIds.keySet)) {
      topicIds = log.topicStarts.map { case (topic, start) => topic -> start.id } ++ topicIds
    }
    EpochEnd(
      starts,
      matches.toLog,
      topicIds.filter { case (topic, id) => starts.contains(topic) && id != TopicIds.Unknown },
      queries.after(everythingIsReplayed = unreplayed.isEmpty))
  }

  def close(): Unit = {
    unreplayed.foreach(_._1.destroy())
    matches.close()
    currentReadBack.hadoop.destroy()
  }
}

/** The rows of the output that an epoch replays, because it reads these records. */
private final case class RowsToReplay(rows: Broadcast[WrittenRows], records: ReadableRecords) extends ReplayedRows {
  override def ofTask(task: Int): Iterator[RowKey] = rows.value.byTask(task).collect {
    case row if records.contain(row.source, row.row.offset) =>
      RowKey(row.source, row.row.offset, row.row.path)
  }
}

/** Driver-side: the sink's state of each run that writes to it. */
object SinkRuns {
  private val runs = mutable.HashMap.empty[String, SinkRun]

  def getOrStart(run: String)(start: => SinkRun): SinkRun =
    synchronized(runs.get(run)).getOrElse {
      val started = start
      synchronized(runs.put(run, started))
      started
    }

  def close(run: String): Unit = synchronized(runs.remove(run)).foreach(_.close())
}
