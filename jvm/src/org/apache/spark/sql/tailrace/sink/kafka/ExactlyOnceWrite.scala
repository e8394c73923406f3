package org.apache.spark.sql.tailrace.sink.kafka

import java.util.UUID

import org.apache.spark.internal.Logging
import org.apache.spark.sql.connector.write.{PhysicalWriteInfo, WriterCommitMessage}
import org.apache.spark.sql.connector.write.streaming.{StreamingDataWriterFactory, StreamingWrite}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.datasources.v2.RealTimeStreamScanExec
import org.apache.spark.sql.execution.streaming.operators.stateful.StateStoreWriter
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinExec
import org.apache.spark.sql.types.StructType
import org.apache.spark.util.SerializableConfiguration
import org.apache.spark.sql.tailrace.errors.ErrorPolicy
import org.apache.spark.sql.tailrace.internals.kafka.{KafkaStream, Producers}
import org.apache.spark.sql.tailrace.origin.{RowIdentity, UsesOrigins}
import org.apache.spark.sql.tailrace.plan.Stages
import org.apache.spark.sql.tailrace.sink.{ExactlyOnceSink, PreparedSink, SinkEpoch}

import tailrace.TailraceException

/**
 * Writes each row once, though Spark computes the open epoch again after a failure. Each output record says in its
 * headers which row it is. A run begins by reading back what its query has written since the last commit, and drops
 * those rows when they come again.
 *
 * Spark makes a new one for each epoch; what outlives an epoch is in [[SinkRuns]].
 */
final class ExactlyOnceWrite(options: SinkOptions, schema: StructType, query: String, tell: SinkCounts => Unit)
    extends StreamingWrite
    with ExactlyOnceSink
    with Logging {
  import ExactlyOnceWrite._

  RecordColumns.check(schema, options.topic)
  private var prepared: Option[Prepared] = None

  override def prepare(begun: SinkEpoch): PreparedSink = {
    val plan = begun.plan
    refuseWhatHasNoIdentity(plan)
    val starts = startsOf(plan)
    val sinkRun = SinkRuns.of(begun.run)(begin(begun, starts))
    val isStateful = plan.exists(_.isInstanceOf[StateStoreWriter])
    sinkRun.begins(starts)
    prepared = Some(Prepared(sinkRun, begun.run, isStateful, isJoin(plan), begun.onError))
    val replayed =
      Option(sinkRun.written).filter(_ => isStateful && isOneStageFromTheSink(plan)).map(Replayed(_, starts))
    PreparedSink(replayed, sinkRun.lastWritten)
  }

  override def runEnded(run: String): Unit = SinkRuns.forget(run)

  /** The first epoch of a run. */
  private def begin(first: SinkEpoch, starts: Map[(String, Int), Long]): SinkRun = {
    import first.{epoch, plan, run}
    val session = plan.session
    val began = System.nanoTime()
    val checkpoint = session.sharedState.activeStreamingQueries.get(UUID.fromString(query)).resolvedCheckpointRoot
    val hadoop = session.sessionState.newHadoopConf()
    val log = new OutputLog(checkpoint, hadoop)
    // Before older writers are fenced: none of them may fence this run in turn.
    log.claim(run)
    val oldWriters = log.transactionalWriters
    Producers.fence(options, (0 until oldWriters).map(EpochWriteContext.transactionalId(query, _)))
    val readCommitted = options.isTransactional || oldWriters > 0
    val tail = new OutputReadBack(options, readCommitted)
    options.topic.foreach(topic => log.begins(topic, tail.endsOf(topic)))
    val lastEnd = log.endOf(epoch - 1)
    val beginnings = log.beginnings(lastEnd.fold(Map.empty[String, Map[String, Long]])(_.ends))
    val late = if (options.isTransactional) LateRecords.none else LateRecords.ofOlderRuns
    val readBack = tail.since(beginnings, query, late)
    val written = new WrittenRows(readBack.rows)
    logInfo(s"Read back ${written.length} rows of epoch $epoch in ${(System.nanoTime() - began) / 1000000} ms")
    val context = session.sparkContext
    val byContent = isJoin(plan)
    val matches =
      if (!byContent) MatchesAhead.none(context)
      else {
        // A record of an epoch that is over, which came late: what it says has been crossed off.
        val open =
          readBack.rows.filterNot(row => starts.get((row.place.topic, row.place.partition)).exists(_ > row.id.offset))
        MatchesAhead.of(context, lastEnd.flatMap(_.matchesLeft), open, SourceEnds.of(plan))
      }
    new SinkRun(
      context,
      log,
      checkpoint,
      context.broadcast(new SerializableConfiguration(hadoop)),
      attempt = written.attempts + 1,
      readCommitted,
      if (written.isEmpty || byContent) Set.empty else CompactedTopics.among(options, beginnings.keys),
      // What is known by its content is crossed off one by one, and must not be read again when it has been.
      if (byContent) SinkRun.later(beginnings, readBack.ends) else beginnings,
      if (byContent) WrittenRows.nothing else written,
      matches)
  }

  override def createStreamingWriterFactory(info: PhysicalWriteInfo): StreamingDataWriterFactory = {
    val Prepared(sinkRun, run, isStateful, byContent, onError) = prepared.getOrElse(throw notFollowed)
    if (options.isTransactional) {
      sinkRun.log.willWriteInTransactions(info.numPartitions())
    }
    EpochWriteContext(
      options,
      schema,
      query,
      run,
      sinkRun.attempt,
      isStateful,
      sinkRun.compacted,
      onError,
      sinkRun.readCommitted,
      sinkRun.written,
      byContent,
      sinkRun.matches.written,
      sinkRun.beginnings,
      sinkRun.lastExecutors,
      sinkRun.checkpoint,
      sinkRun.hadoop)
  }

  override def useCommitCoordinator(): Boolean = false

  override def commit(epoch: Long, messages: Array[WriterCommitMessage]): Unit =
    prepared.foreach { case Prepared(sinkRun, _, _, _, _) =>
      val ends = messages.toSeq.collect { case end: TaskEnd => end }
      if (ends.exists(_.isRepeated)) {
        // The epoch may have ended before the task that was repeated had come as far as it was: the rest comes in the next one.
        val tail = new OutputReadBack(options, sinkRun.readCommitted)
        sinkRun.found(new WrittenRows(tail.since(
          sinkRun.log.beginnings(sinkRun.beginnings),
          query,
          LateRecords.none).rows))
      }
      sinkRun.ended(ends)
      sinkRun.log.ended(epoch, EpochEnd(sinkRun.beginnings, sinkRun.matches.toLog))
      sinkRun.log.forgetBefore(epoch - KeptEpochs)
      tell(ends.map(_.counts).foldLeft(SinkCounts.none)(_ + _))
    }

  override def abort(epoch: Long, messages: Array[WriterCommitMessage]): Unit = ()

  override def toString: String = "TailraceKafkaWrite"
}

object ExactlyOnceWrite {
  private final case class Prepared(
      sinkRun: SinkRun,
      run: String,
      isStateful: Boolean,
      byContent: Boolean,
      onError: ErrorPolicy)

  // More than Spark keeps of its own logs by default.
  private val KeptEpochs = 200

  private def refuseWhatHasNoIdentity(plan: SparkPlan): Unit = {
    plan.collectFirst { case scan: RealTimeStreamScanExec if !KafkaStream.isKafka(scan.stream) => scan }.foreach {
      scan =>
        throw new TailraceException(
          "TAILRACE_NO_ROW_IDENTITY",
          s"the source ${scan.stream} gives its rows no offsets, so that a row that comes again cannot be recognised.",
          "read from Kafka, or write with format(\"kafka\"), which may write rows twice after a failure.")
    }
    // What can be told of the query as it was written has been; nothing but this reaches the sink.
    plan.collectFirst {
      case join: StreamingSymmetricHashJoinExec if hasIdentity(join, RowIdentity.Content) => join
    }.foreach { join =>
      val isOnlyState = plan.collect { case operator: StateStoreWriter => operator }.length == 1
      if (!MatchIdentity.Kinds(join.joinType) || !isOnlyState || !isOneStageFromTheSink(plan)) {
        throw TailraceKafka.cannotKnowMatches
      }
    }
    if (plan.exists(hasIdentity(_, RowIdentity.Unknown))) {
      throw new TailraceException(
        "TAILRACE_NO_ROW_IDENTITY",
        "mapInPandas and mapInArrow do not say which row a result belongs to, so that one that comes again cannot be recognised.",
        "use a udf, pandas_udf or arrow_udf, or write with format(\"kafka\"), which may write rows twice after a failure.")
    }
  }

  private def isJoin(plan: SparkPlan): Boolean = plan.exists(hasIdentity(_, RowIdentity.Content))

  private def hasIdentity(node: SparkPlan, identity: RowIdentity): Boolean = node match {
    case operator: UsesOrigins => operator.rowIdentity == identity
    case _ => false
  }

  /** Whether all state is kept behind the last shuffle, whose rows can be put into the order in which they came before. */
  private def isOneStageFromTheSink(plan: SparkPlan): Boolean = {
    val inLastStage = new Stages(plan).within(plan).count(_.isInstanceOf[StateStoreWriter])
    inLastStage == plan.collect { case operator: StateStoreWriter => operator }.length
  }

  private def startsOf(plan: SparkPlan): Map[(String, Int), Long] =
    plan.collect { case scan: RealTimeStreamScanExec => KafkaStream.offsetsIn(scan.start).toSeq }
      .flatten.groupMapReduce(_._1)(_._2)(math.min)

  private def notFollowed = new TailraceException(
    "TAILRACE_NO_ROW_IDENTITY",
    s"rows are not followed from their source to the sink ${TailraceKafka.Format}.",
    "start the query with .trigger(realTime=…), and leave spark.sql.streaming.realTimeMode.allowlistCheck unset.")
}
