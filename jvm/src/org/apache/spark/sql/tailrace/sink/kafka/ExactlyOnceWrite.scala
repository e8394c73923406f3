package org.apache.spark.sql.tailrace.sink.kafka

import java.util.UUID

import org.apache.spark.internal.Logging
import org.apache.spark.sql.connector.write.{PhysicalWriteInfo, WriterCommitMessage}
import org.apache.spark.sql.connector.write.streaming.{StreamingDataWriterFactory, StreamingWrite}
import org.apache.spark.sql.tailrace.errors.ErrorPolicy
import org.apache.spark.sql.tailrace.internals.kafka.Producers
import org.apache.spark.sql.tailrace.origin.SourceScans
import org.apache.spark.sql.tailrace.sink.{ExactlyOnceSink, PreparedSink, SinkCounts, SinkEpoch, SourceEnds}
import org.apache.spark.sql.tailrace.sink.dedup.{DeduplicationStrategy, WrittenRows}
import org.apache.spark.sql.tailrace.sink.identity.{NoRowIdentity, PlanIdentity, QueryFingerprint}
import org.apache.spark.sql.tailrace.sink.kafka.Offsets.NoOutput
import org.apache.spark.sql.tailrace.sink.replay.{OpenEpochRows, QueriesOfEpoch, ReadableRecords, UnreplayedMatches}
import org.apache.spark.sql.tailrace.sink.replay.SourceOffsets.{NoSource, SourceOffsets}
import org.apache.spark.sql.types.StructType
import org.apache.spark.util.SerializableConfiguration

/**
 * Writes each row once, although Spark computes the open epoch again after a failure. Each output record carries the
 * identity of its row in its headers. A run starts by reading back what its query has written since the last commit,
 * and drops those rows when they are replayed.
 *
 * Spark creates a new instance for each epoch. What outlives an epoch is in [[SinkRuns]].
 *
 * @param report receives the counts of each committed epoch
 */
final class ExactlyOnceWrite(options: SinkOptions, schema: StructType, query: String, report: SinkCounts => Unit)
    extends StreamingWrite
    with ExactlyOnceSink
    with Logging {
  import ExactlyOnceWrite._

  RecordColumns.check(schema, options.topic)
  private var prepared: Option[Prepared] = None

  override def prepare(epoch: SinkEpoch): PreparedSink = {
    val identity = new PlanIdentity(epoch.plan)
    identity.check()
    val starts = SourceScans.startsIn(epoch.plan)
    val sinkRun = SinkRuns.getOrStart(epoch.run)(start(epoch, starts, identity.strategy))
    sinkRun.startEpoch(epoch.epoch, starts, readBackAgain(sinkRun))
    prepared = Some(Prepared(sinkRun, epoch.run, identity.strategy, epoch.onError, takesOver = false))
    // Another query may never make the rows that would be waited for.
    val keepsOrder = identity.strategy == DeduplicationStrategy.StatefulByOrigin &&
      identity.hasStateInLastStageOnly && sinkRun.queries.isSame
    PreparedSink(if (keepsOrder) sinkRun.rowsToReplay(starts) else None, sinkRun.replayUntil)
  }

  override def reasonAgainstOverlap: Option[String] =
    if (options.isTransactional) Some(s"the sink ${TailraceKafka.Format} writes in transactions")
    else prepared.flatMap(_.sinkRun.reasonAgainstOverlap)

  override def prepareAhead(epoch: SinkEpoch): Unit = {
    val sinkRun = SinkRuns.of(epoch.run).getOrElse(throw new IllegalStateException("the run has ended"))
    val reader = new OutputReadBack(options, readCommitted = false)
    val topics = sinkRun.log.topicStarts.keys
    // Looked at before any task of this epoch can write: what the next run reads back must begin before its first row.
    sinkRun.beginsAhead(epoch.epoch, topics.map(topic => topic -> reader.endOffsets(topic)).toMap)
    prepared =
      Some(Prepared(sinkRun, epoch.run, new PlanIdentity(epoch.plan).strategy, epoch.onError, takesOver = true))
  }

  private def readBackAgain(sinkRun: SinkRun): WrittenRows = {
    val reader = new OutputReadBack(options, sinkRun.readBack.readCommitted)
    val starts = sinkRun.log.startOffsets(sinkRun.readBack.starts)
    val own = new OwnRecords(query, sinkRun.readBack.secret, byContent = false)
    new WrittenRows(sinkRun.openAtStart.rowsAmong(reader.readSince(starts, own, LateRecords.none).rows))
  }

  override def runEnded(run: String): Unit = SinkRuns.end(run)

  /** In the first epoch of a run: fences older writers and reads back what they have written. */
  private def start(first: SinkEpoch, starts: SourceOffsets, strategy: DeduplicationStrategy): SinkRun = {
    import first.{epoch, plan, run}
    val session = plan.session
    val context = session.sparkContext
    val startedAt = System.nanoTime()
    val execution = session.sharedState.activeStreamingQueries.get(UUID.fromString(query))
    val checkpoint = execution.resolvedCheckpointRoot
    val hadoop = session.sessionState.newHadoopConf()
    val log = new OutputLog(checkpoint, hadoop)
    // Before older writers are fenced, so none of them fences this run in turn.
    log.claim(run)
    val oldWriters = log.transactionalWriters
    Producers.fence(options, (0 until oldWriters).map(WriterIdentity.transactionalId(query, _)))
    val readCommitted = options.isTransactional || oldWriters > 0
    val reader = new OutputReadBack(options, readCommitted)
    val lastEpoch = log.epochEnd(epoch - 1)
    val topicIds = TopicIds.of(options, log.topicStarts.keySet ++ options.topic)
    options.topic.foreach(topic =>
      log.addTopic(topic, TopicStart(reader.endOffsets(topic), TopicIds.in(topicIds, topic))))
    val otherTopics = replaceOtherTopics(log, lastEpoch, topicIds)
    val outputStarts = log.startOffsets(lastEpoch.fold(NoOutput)(_.ends -- otherTopics))
    val late = if (options.isTransactional) LateRecords.none else LateRecords.ofOlderRuns
    val byContent = strategy == DeduplicationStrategy.ByContent
    val secret = log.secret()
    val readBack = reader.readSince(outputStarts, new OwnRecords(query, secret, byContent), late)
    val openEpoch = OpenEpochRows(epoch, starts)
    val rows = new WrittenRows(openEpoch.rowsAmong(readBack.rows))
    logInfo(s"Read back ${rows.length} rows of epoch $epoch in ${(System.nanoTime() - startedAt) / 1000000} ms")
    lazy val readable = ReadableRecords(starts, SourceEnds.of(plan))
    // Without what was committed, such as a late record, and without what no source of the query holds any more.
    val toReplay = readBack.rows.filter(row => readable.contain(row.source, row.row.offset))
    val fingerprint = QueryFingerprint.of(options.topic, RecordColumns.Names, execution.analyzedPlan)
    val queries = new QueriesOfEpoch(log, epoch, lastEpoch.map(_.queries), fingerprint)
    queries.start(hasRows = toReplay.nonEmpty)
    if (!queries.isSame) {
      logWarning(
        s"The query or its topic has changed in the middle of epoch $epoch: the output has ${toReplay.length} rows " +
          "of another one. Only rows that are exactly the same are recognized. Drain a query before you change it.")
    }
    val matches =
      if (!byContent) UnreplayedMatches.none(context)
      else {
        // What stood in another topic is not in this one, and a match does not say in which topic it stands.
        val left = lastEpoch.flatMap(_.matchesLeft).filter(_ => otherTopics.isEmpty)
        UnreplayedMatches.of(context, left, toReplay, readable)
      }
    new SinkRun(
      context,
      log,
      attempt = rows.attempts + 1,
      compactedTopics =
        if (rows.isEmpty || byContent) Set.empty else CompactedTopics.among(options, outputStarts.keys),
      ReadBackContext(
        checkpoint,
        context.broadcast(new SerializableConfiguration(hadoop)),
        // The log keeps the matches that are left, so they must not be read a second time.
        if (byContent) Offsets.later(outputStarts, readBack.ends) else outputStarts,
        readCommitted,
        secret),
      readBack.ends,
      topicIds,
      queries,
      openEpoch,
      if (byContent) WrittenRows.none else rows,
      if (byContent) NoSource else new WrittenRows(toReplay).lastOffsets,
      matches)
  }

  /** Finds topics that are not those of the last run, though they have the same names, to read all of them. */
  private def replaceOtherTopics(log: OutputLog, lastEpoch: Option[EpochEnd], ids: Map[String, String]): Set[String] = {
    val starts = log.topicStarts
    val others = ids.filter { case (topic, id) =>
      val known = lastEpoch.flatMap(_.topicIds.get(topic)) ++ starts.get(topic).map(_.id)
      !known.forall(TopicIds.mayBeSame(_, id))
    }
    others.foreach { case (topic, id) =>
      logWarning(
        s"The output topic $topic was deleted and created again, or is on another cluster: it had another id when " +
          "this query last wrote to it. It is read back from its first record.")
      log.replaceTopic(topic, id)
    }
    others.keySet
  }

  override def createStreamingWriterFactory(info: PhysicalWriteInfo): StreamingDataWriterFactory = {
    val Prepared(sinkRun, run, strategy, onError, takesOver) = prepared.getOrElse(
      throw NoRowIdentity.ofUntrackedRows(TailraceKafka.Format).error)
    if (options.isTransactional) {
      sinkRun.log.addTransactionalWriters(info.numPartitions())
    }
    EpochWriteContext(
      WriterIdentity(query, run, sinkRun.attempt),
      OutputSettings(options, schema, onError, sinkRun.lastExecutors),
      ReplayContext(
        strategy,
        sinkRun.rows,
        sinkRun.matches.broadcast,
        sinkRun.compactedTopics,
        isSameQuery = sinkRun.rows.isEmpty || sinkRun.queries.isSame,
        takesOver),
      sinkRun.readBack)
  }

  override def useCommitCoordinator(): Boolean = false

  override def commit(epoch: Long, messages: Array[WriterCommitMessage]): Unit =
    prepared.foreach { case Prepared(sinkRun, _, _, _, _) =>
      val commits = messages.toSeq.collect { case commit: TaskCommit => commit }
      if (commits.exists(_.isRetry)) {
        // The epoch may have ended before the retry got as far as the failed attempt: the next epoch replays the rest.
        val rows = readBackAgain(sinkRun)
        sinkRun.replaceRows(rows, until = rows.lastOffsets)
      }
      sinkRun.commitEpoch(epoch, commits)
      sinkRun.log.commitEpoch(epoch, sinkRun.epochEnd)
      sinkRun.log.purgeBefore(epoch - KeptEpochs)
      report(commits.map(_.counts).foldLeft(SinkCounts.none)(_ + _))
    }

  override def abort(epoch: Long, messages: Array[WriterCommitMessage]): Unit = ()

  override def toString: String = "TailraceKafkaWrite"
}

object ExactlyOnceWrite {
  /** @param takesOver true if the tasks of the epoch start while the epoch before is running */
  private final case class Prepared(
      sinkRun: SinkRun,
      run: String,
      strategy: DeduplicationStrategy,
      onError: ErrorPolicy,
      takesOver: Boolean)

  // More than Spark keeps of its own logs by default.
  private val KeptEpochs = 200
}
