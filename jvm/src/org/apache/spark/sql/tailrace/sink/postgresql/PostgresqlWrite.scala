package org.apache.spark.sql.tailrace.sink.postgresql

import java.util.UUID

import org.apache.spark.internal.Logging
import org.apache.spark.sql.connector.write.{PhysicalWriteInfo, WriterCommitMessage}
import org.apache.spark.sql.connector.write.streaming.{StreamingDataWriterFactory, StreamingWrite}
import org.apache.spark.sql.execution.streaming.checkpointing.CommitLog
import org.apache.spark.sql.tailrace.errors.ErrorPolicy
import org.apache.spark.sql.tailrace.origin.SourceScans
import org.apache.spark.sql.tailrace.sink.{ExactlyOnceSink, PreparedSink, SinkEpoch, SourceEnds}
import org.apache.spark.sql.tailrace.sink.dedup.{DeduplicationStrategy, WrittenRows}
import org.apache.spark.sql.tailrace.sink.identity.{NoRowIdentity, PlanIdentity, QueryFingerprint}
import org.apache.spark.sql.tailrace.sink.replay.ReadableRecords
import org.apache.spark.sql.tailrace.sink.replay.SourceOffsets.{NoSource, SourceOffsets}
import org.apache.spark.sql.types.StructType

/**
 * Writes each row once, although Spark computes the open epoch again after a failure. Which rows a transaction writes
 * is noted in a journal, in the same transaction. A run starts by shutting out older ones and reading their journal,
 * and drops those rows when they are replayed.
 *
 * Spark creates a new instance for each epoch. What outlives an epoch is in [[PostgresqlRuns]].
 *
 * @param report receives the counts of each committed epoch
 */
private[postgresql] final class PostgresqlWrite(
    options: PostgresqlOptions,
    schema: StructType,
    query: String,
    report: EpochCounts => Unit)
    extends StreamingWrite
    with ExactlyOnceSink
    with Logging {
  import PostgresqlWrite._

  private var prepared: Option[Prepared] = None

  override def prepare(epoch: SinkEpoch): PreparedSink = {
    val identity = new PlanIdentity(epoch.plan)
    identity.check()
    if (identity.strategy == DeduplicationStrategy.ByContent) {
      throw MatchesRefused.error
    }
    val starts = SourceScans.startsIn(epoch.plan)
    val run = PostgresqlRuns.getOrStart(epoch.run)(start(epoch, starts))
    run.startEpoch(epoch.epoch, starts)
    prepared = Some(Prepared(run, identity.strategy, epoch.onError))
    // Another query may never make the rows that would be waited for.
    val keepsOrder = identity.strategy == DeduplicationStrategy.StatefulByOrigin &&
      identity.hasStateInLastStageOnly && run.isSameQuery
    PreparedSink(if (keepsOrder) run.rowsToReplay(starts) else None, run.replayUntil)
  }

  /** In the first epoch of a run: checks the table, shuts out older runs and reads back what they have written. */
  private def start(first: SinkEpoch, starts: SourceOffsets): PostgresqlRun = {
    val session = first.plan.session
    val execution = session.sharedState.activeStreamingQueries.get(UUID.fromString(query))
    val startedAt = System.nanoTime()
    val (table, claimed) = Retries.inTransaction(options) { connection =>
      val table = TableCheck.require(connection, options, schema)
      val state = StateTables.of(options, table)
      state.create(connection)
      (table, state.claim(connection, query, first.epoch, table.oid))
    }
    val target = EpochTarget(
      options,
      table,
      StateTables.of(options, table),
      schema,
      QueryFingerprint.of(Some(table.quoted), schema.fieldNames.toSet, execution.analyzedPlan),
      session.sessionState.conf.sessionLocalTimeZone)
    logInfo(
      s"Read back ${claimed.rows.length} rows of epoch ${first.epoch} in " +
        s"${(System.nanoTime() - startedAt) / 1000000} ms")
    val until =
      if (claimed.rows.isEmpty) NoSource
      else {
        // Without what no source of the query holds any more.
        val readable = ReadableRecords(starts, SourceEnds.of(first.plan))
        new WrittenRows(claimed.rows.filter(row => readable.contain(row.source, row.row.offset))).lastOffsets
      }
    val isSameQuery = (claimed.queries - target.fingerprint).isEmpty || until.isEmpty
    if (!isSameQuery) {
      logWarning(
        s"The query has changed in the middle of epoch ${first.epoch}: the table has rows of another one. Only rows " +
          "that are exactly the same are recognized. Drain a query before you change it.")
    }
    new PostgresqlRun(
      session.sparkContext,
      query,
      claimed.number,
      target,
      () => new CommitLog(session, s"${execution.resolvedCheckpointRoot}/commits").getLatestBatchId(),
      isSameQuery,
      new WrittenRows(claimed.rows),
      until)
  }

  override def createStreamingWriterFactory(info: PhysicalWriteInfo): StreamingDataWriterFactory = {
    val Prepared(run, strategy, onError) = prepared.getOrElse(
      throw NoRowIdentity.ofUntrackedRows(TailracePostgresql.Format).error)
    EpochWriter(query, run.number, run.target, onError, strategy, run.rows, run.isSameQuery)
  }

  override def useCommitCoordinator(): Boolean = false

  override def commit(epoch: Long, messages: Array[WriterCommitMessage]): Unit = prepared.foreach {
    case Prepared(run, _, _) =>
      val commits = messages.toSeq.collect { case commit: TaskCommit => commit }
      run.commitEpoch(hasRetries = commits.exists(_.isRetry))
      report(commits.map(_.counts).foldLeft(EpochCounts.none)(_ + _))
  }

  override def abort(epoch: Long, messages: Array[WriterCommitMessage]): Unit = ()

  override def runEnded(run: String): Unit = PostgresqlRuns.close(run)

  override def toString: String = "TailracePostgresqlWrite"
}

private object PostgresqlWrite {
  private final case class Prepared(run: PostgresqlRun, strategy: DeduplicationStrategy, onError: ErrorPolicy)

  /** Matches are recognized by their content, and one that is not replayed at once must be kept over epochs. */
  val MatchesRefused: NoRowIdentity = NoRowIdentity(
    s"${TailracePostgresql.Format} does not recognize the matches of two streams after a replay.",
    "write the matches to a topic with format(\"tailrace-kafka\"), and from there to PostgreSQL with a second query.")
}
