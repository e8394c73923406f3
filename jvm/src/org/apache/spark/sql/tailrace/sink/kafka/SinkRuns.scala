package org.apache.spark.sql.tailrace.sink.kafka

import java.util.concurrent.ConcurrentHashMap

import org.apache.spark.SparkContext
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.sql.tailrace.origin.ReplayedRows
import org.apache.spark.sql.tailrace.sink.dedup.WrittenRows
import org.apache.spark.sql.tailrace.sink.kafka.Offsets.OutputOffsets
import org.apache.spark.sql.tailrace.sink.replay.{
  OpenEpochRows, QueriesOfEpoch, SinkRunRegistry, UnreplayedMatches, UnreplayedRows
}
import org.apache.spark.sql.tailrace.sink.replay.SourceOffsets.SourceOffsets

/**
 * Driver-side: what the sink remembers from epoch to epoch during a run.
 *
 * @param attempt         see [[WriterIdentity]]
 * @param compactedTopics see [[ReplayContext]]
 * @param readBackAtStart where and how to read back, when the run starts
 * @param readUntil       where the run's read-back ended
 * @param topicIdsAtStart by topic, see [[TopicIds]]
 * @param queries         the queries that wrote what the run's read-back found
 * @param openAtStart     the epoch that was open when the run started
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
    val openAtStart: OpenEpochRows,
    rowsAtStart: WrittenRows,
    untilAtStart: SourceOffsets,
    val matches: UnreplayedMatches) {
  // The next epoch may be planned in another thread.
  @volatile private var currentReadBack = readBackAtStart
  private val unreplayed = new UnreplayedRows(context)
  // By epoch that takes over, where the output ended before its first row.
  private val beginningsAhead = new ConcurrentHashMap[Long, OutputOffsets]
  private var executors: Map[Int, String] = Map.empty
  private var topicIds = topicIdsAtStart
  // Once everything has been replayed that was read back, the next run need not read it again.
  private var ends: OutputOffsets = readUntil
  unreplayed.replace(rowsAtStart, untilAtStart)

  def readBack: ReadBackContext = currentReadBack

  /** As long as rows are replayed, they are compared within one epoch. */
  def reasonAgainstOverlap: Option[String] =
    Option.when(!unreplayed.isEmpty || replayUntil.nonEmpty)("rows of the run before are being replayed")

  /** An epoch is about to start while the one before is running. The output ends here or further on. */
  def beginsAhead(epoch: Long, ends: OutputOffsets): Unit = beginningsAhead.put(epoch, ends)

  /** By task, the executor that wrote its part of the last epoch. */
  def lastExecutors: Map[Int, String] = executors

  /** The rows that the output holds of the epochs to come; none if all of them have been replayed. */
  def rows: Option[Broadcast[WrittenRows]] = unreplayed.rows

  /** By source partition, the last record of which the output already holds a row that will be replayed. */
  def replayUntil: SourceOffsets = matches.replayUntil ++ unreplayed.replayUntil

  /** What an epoch with these start offsets replays of [[rows]]. */
  def rowsToReplay(starts: SourceOffsets): Option[ReplayedRows] = unreplayed.toReplay(starts)

  /** Sets what the output holds since the start offsets of the read-back; see [[UnreplayedRows]]. */
  def replaceRows(rows: WrittenRows, until: SourceOffsets): Unit = unreplayed.replace(rows, until)

  /** @param readBack what the output holds now; see [[UnreplayedRows]] */
  def startEpoch(epoch: Long, starts: SourceOffsets, readBack: => WrittenRows): Unit = {
    matches.startEpoch(starts)
    unreplayed.startEpoch(epoch, starts, readBack)
  }

  def commitEpoch(epoch: Long, tasks: Seq[TaskCommit]): Unit = {
    executors ++= tasks.map(task => task.task -> task.executor)
    ends = tasks.foldLeft(ends)((all, task) => Offsets.later(all, task.ends))
    matches.commitEpoch(tasks.map(commit => commit.task -> commit.notReplayed).toMap)
    unreplayed.commitEpoch(isReadBack = tasks.exists(_.isRetry))
    // Rows that are still to be replayed stand before those of this epoch, and a new run must read them again.
    if (unreplayed.isEmpty) {
      // Rows of an epoch that has taken over may stand before the last ones of this epoch.
      val next = Option(beginningsAhead.remove(epoch + 1)).fold(ends)(Offsets.earlier(ends, _))
      currentReadBack = currentReadBack.copy(starts = Offsets.later(currentReadBack.starts, next))
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
    unreplayed.close()
    matches.close()
    currentReadBack.hadoop.destroy()
  }
}

/** Driver-side: the sink's state of each run that writes to it. */
object SinkRuns extends SinkRunRegistry[SinkRun](_.close())
