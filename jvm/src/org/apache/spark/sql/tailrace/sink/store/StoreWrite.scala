package org.apache.spark.sql.tailrace.sink.store

import java.util.UUID

import org.apache.spark.internal.Logging
import org.apache.spark.sql.connector.write.{PhysicalWriteInfo, WriterCommitMessage}
import org.apache.spark.sql.connector.write.streaming.{StreamingDataWriterFactory, StreamingWrite}
import org.apache.spark.sql.execution.streaming.checkpointing.CommitLog
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution
import org.apache.spark.sql.tailrace.errors.ErrorPolicy
import org.apache.spark.sql.tailrace.origin.SourceScans
import org.apache.spark.sql.tailrace.sink.{ExactlyOnceSink, PreparedSink, SinkEpoch, SourceEnds}
import org.apache.spark.sql.tailrace.sink.dedup.{DeduplicationStrategy, WrittenRows}
import org.apache.spark.sql.tailrace.sink.identity.{NoRowIdentity, PlanIdentity}
import org.apache.spark.sql.tailrace.sink.replay.{ReadableRecords, SinkRunRegistry}
import org.apache.spark.sql.tailrace.sink.replay.SourceOffsets.{NoSource, SourceOffsets}

/** Driver-side: the state of each run that writes to a kind of store. */
private[sink] abstract class StoreRuns[C, R <: StoreRow] extends SinkRunRegistry[StoreRun[C, R]](_.close())

/**
 * Writes each row once, although Spark computes the open epoch again after a failure. Which rows a batch writes is
 * noted in a journal, in the same atomic step. A run starts by shutting out older ones and reading their journal, and
 * drops those rows when they are replayed.
 *
 * Spark creates a new instance for each epoch. What outlives an epoch is in `runs`.
 *
 * @param report receives the counts of each committed epoch
 */
private[sink] abstract class StoreWrite[C, R <: StoreRow](
    format: String,
    query: String,
    runs: StoreRuns[C, R],
    report: EpochCounts => Unit)
    extends StreamingWrite
    with ExactlyOnceSink
    with Logging {
  import StoreWrite._

  private var prepared: Option[Prepared[C, R]] = None

  /** In the first epoch of a run: checks the output, shuts out older runs and reads what they have written. */
  protected def claim(first: SinkEpoch, execution: StreamExecution): (Store[C, R], ClaimedRun)

  override def prepare(epoch: SinkEpoch): PreparedSink = {
    val identity = new PlanIdentity(epoch.plan)
    identity.check()
    if (identity.strategy == DeduplicationStrategy.ByContent) {
      throw matchesRefused(format).error
    }
    val starts = SourceScans.startsIn(epoch.plan)
    val run = runs.getOrStart(epoch.run)(start(epoch, starts))
    run.startEpoch(epoch.epoch, starts)
    prepared = Some(Prepared(run, identity.strategy, epoch.onError))
    // Another query may never make the rows that would be waited for.
    val keepsOrder = identity.strategy == DeduplicationStrategy.StatefulByOrigin &&
      identity.hasStateInLastStageOnly && run.isSameQuery
    PreparedSink(if (keepsOrder) run.unreplayed.toReplay(starts) else None, run.unreplayed.replayUntil)
  }

  private def start(first: SinkEpoch, starts: SourceOffsets): StoreRun[C, R] = {
    val session = first.plan.session
    val execution = session.sharedState.activeStreamingQueries.get(UUID.fromString(query))
    val startedAt = System.nanoTime()
    val (store, ClaimedRun(number, journal)) = claim(first, execution)
    logInfo(
      s"Read back ${journal.rows.length} rows of epoch ${first.epoch} in " +
        s"${(System.nanoTime() - startedAt) / 1000000} ms")
    val until =
      if (journal.rows.isEmpty) NoSource
      else {
        // Without what no source of the query holds any more.
        val readable = ReadableRecords(starts, SourceEnds.of(first.plan))
        new WrittenRows(journal.rows.filter(row => readable.contain(row.source, row.row.offset))).lastOffsets
      }
    val isSameQuery = (journal.queries - store.fingerprint).isEmpty || until.isEmpty
    if (!isSameQuery) {
      logWarning(
        s"The query has changed in the middle of epoch ${first.epoch}: the output has rows of another one. Only rows " +
          "that are exactly the same are recognized. Drain a query before you change it.")
    }
    new StoreRun(
      session.sparkContext,
      query,
      number,
      store,
      () => new CommitLog(session, s"${execution.resolvedCheckpointRoot}/commits").getLatestBatchId(),
      isSameQuery,
      new WrittenRows(journal.rows),
      until)
  }

  override def createStreamingWriterFactory(info: PhysicalWriteInfo): StreamingDataWriterFactory = {
    val Prepared(run, strategy, onError) =
      prepared.getOrElse(throw NoRowIdentity.ofUntrackedRows(format).error)
    EpochWriter(query, run.number, run.store, onError, strategy, run.unreplayed.rows, run.isSameQuery)
  }

  override def useCommitCoordinator(): Boolean = false

  override def commit(epoch: Long, messages: Array[WriterCommitMessage]): Unit = prepared.foreach {
    case Prepared(run, _, _) =>
      val commits = messages.toSeq.collect { case commit: TaskCommit => commit }
      run.commitEpoch(epoch, commits)
      report(commits.map(_.counts).foldLeft(EpochCounts.none)(_ + _))
  }

  override def abort(epoch: Long, messages: Array[WriterCommitMessage]): Unit = ()

  override def reasonAgainstOverlap: Option[String] = Some(s"the sink $format does not overlap epochs")

  override def prepareAhead(epoch: SinkEpoch): Unit =
    throw new IllegalStateException(s"the epochs of $format do not overlap")

  override def runEnded(run: String): Unit = runs.end(run)

  override def toString: String = format
}

private[sink] object StoreWrite {
  private final case class Prepared[C, R <: StoreRow](
      run: StoreRun[C, R],
      strategy: DeduplicationStrategy,
      onError: ErrorPolicy)

  /** Matches are recognized by their content, and one that is not replayed at once must be kept over epochs. */
  def matchesRefused(format: String): NoRowIdentity = NoRowIdentity(
    s"$format does not recognize the matches of two streams after a replay.",
    "write the matches to a topic with format(\"tailrace-kafka\"), and from there to the store with a second query.")
}
