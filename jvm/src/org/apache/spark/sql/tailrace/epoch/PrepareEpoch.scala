package org.apache.spark.sql.tailrace.epoch

import java.util.UUID

import org.apache.spark.SparkContext
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.datasources.v2.RealTimeStreamScanExec
import org.apache.spark.sql.execution.streaming.runtime.{MicroBatchExecution, StreamExecution}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.tailrace.conf.TailraceConf
import org.apache.spark.sql.tailrace.epoch.context.{EpochContext, EpochId, OriginTracking, ScanControl}
import org.apache.spark.sql.tailrace.epoch.drain.Drains
import org.apache.spark.sql.tailrace.errors.ErrorPolicy
import org.apache.spark.sql.tailrace.internals.QueryOptions
import org.apache.spark.sql.tailrace.metrics.{EpochLatency, LiveFigures, TaskIdentity}
import org.apache.spark.sql.tailrace.origin.{SourcePartitions, UsesOrigins}
import org.apache.spark.sql.tailrace.plan.Stages
import org.apache.spark.sql.tailrace.sink.{ExactlyOnceSink, PreparedSink, SinkEpoch}

/**
 * Everything that has to happen on the driver before an epoch is planned, in this order. It runs once per epoch in the
 * query's own thread, and may block. No other part of planning has effects: the rules only see the context.
 */
private[epoch] object PrepareEpoch {
  def apply(plan: SparkPlan): EpochContext = {
    // What the user has set: a wrong value ends the query before anything has happened.
    val settings = EpochSettings.of(plan)
    val onError = errorPolicyOf(plan)
    // The sink and the live figures are shown the operators that will run. The rules are pure, so looking is free.
    val operators = EpochRules.replaceOperators(plan, EpochContext.operatorsOnly(onError, settings.addsOperators))
    val id = epochOfThisThread(plan.session.sparkContext)

    id.foreach(waitIfDrained)
    val sink = ExactlyOnceSink.in(operators).filter(_ => settings.addsOperators)
    val written = for (sink <- sink; id <- id) yield prepare(sink, SinkEpoch(operators, id.run, id.epoch, onError))

    val needsOrigins = sink.isDefined || onError.skipsBadRecords || operators.exists(usesOrigins)
    val tracking = Option.when(settings.addsOperators && (settings.timesRows || needsOrigins)) {
      OriginTracking(
        new SourcePartitions,
        everyRow = settings.tracksEveryRow || needsOrigins,
        latency = Option.when(settings.timesRows)(EpochLatency.registered(plan.session.sparkContext)),
        replayed = written.flatMap(_.replayed))
    }
    // Also if no row is timed: readiness and drains are about every real-time query.
    id.foreach(registerFigures(_, plan, operators, timed = tracking.exists(_.isTimed)))
    val isShort = id.exists(isOneOfTheFirst(_, settings.shortEpochs))

    EpochContext(
      onError,
      settings.addsOperators,
      tracking,
      shortenToMs = Option.when(isShort)(WarmStart.ShortMs),
      scans = id.map(id => ScanControl(id.run, readAtLeast = written.fold(PreparedSink.NoRecords)(_.replayUntil))),
      refusesUnsupported = true)
  }

  /** For a plan that is never run. The settings are read, so that `check` finds a wrong value before the start. */
  def rehearsal(plan: SparkPlan): EpochContext = EpochContext.rehearsal(EpochSettings.of(plan).addsOperators)

  /** None outside a query's own thread, for example when another thread asks Spark to explain the query. */
  private def epochOfThisThread(context: SparkContext): Option[EpochId] =
    for {
      run <- Option(context.getLocalProperty(TaskIdentity.RunKey))
      epoch <- Option(context.getLocalProperty(MicroBatchExecution.BATCH_ID_KEY)).flatMap(_.toLongOption)
    } yield EpochId(run, epoch)

  private def errorPolicyOf(plan: SparkPlan): ErrorPolicy =
    Option(plan.session.sparkContext.getLocalProperty(StreamExecution.QUERY_ID_KEY))
      .flatMap(id => Option(plan.session.sharedState.activeStreamingQueries.get(UUID.fromString(id))))
      .collect { case query: MicroBatchExecution => ErrorPolicy.of(QueryOptions.of(query), query.id, plan) }
      .getOrElse(ErrorPolicy.Fail)

  /**
   * The epoch before has been committed. If the run is to be drained, this one does not begin until that is
   * withdrawn.
   */
  private def waitIfDrained(id: EpochId): Unit = Drains.passOrWait(id.run, id.epoch)

  /** The sink claims its output for this run, fences older writers and reads back what they have written. */
  private def prepare(sink: ExactlyOnceSink, epoch: SinkEpoch): PreparedSink = {
    Runs.writesTo(epoch.run, sink)
    sink.prepare(epoch)
  }

  private def usesOrigins(node: SparkPlan): Boolean = node match {
    case operator: UsesOrigins => operator.usesOrigins
    case _ => false
  }

  private def registerFigures(id: EpochId, plan: SparkPlan, operators: SparkPlan, timed: Boolean): Unit = {
    val durationMs = plan.collectFirst { case scan: RealTimeStreamScanExec => scan.batchDurationMs }
    LiveFigures.planned(id.run, durationMs, new Stages(operators).shapes, timed)
  }

  /**
   * Users are told that the query is warming up when its short epochs begin, and that it is ready after the last one.
   */
  private def isOneOfTheFirst(id: EpochId, shortEpochs: Int): Boolean = {
    val before = Runs.epochsBefore(id)
    val isShort = before < shortEpochs
    if (shortEpochs > 0 && (before == 0 || before == shortEpochs)) {
      LiveFigures.warming(id.run, id.epoch, isWarming = isShort)
    }
    isShort
  }
}

/**
 * @param addsOperators  see [[EpochContext]]
 * @param timesRows      whether rows are timed on their way
 * @param tracksEveryRow whether the user asks for the origin of every row
 * @param shortEpochs    how many epochs at the start of a run are short
 */
private final case class EpochSettings(
    addsOperators: Boolean,
    timesRows: Boolean,
    tracksEveryRow: Boolean,
    shortEpochs: Int)

private object EpochSettings {
  def of(plan: SparkPlan): EpochSettings = EpochSettings(
    addsOperators = !plan.conf.getConf(SQLConf.STREAMING_REAL_TIME_MODE_ALLOWLIST_CHECK),
    timesRows = TailraceConf.LatencyEnabled.valueIn(plan.conf),
    tracksEveryRow = TailraceConf.OriginEveryRow.valueIn(plan.conf),
    shortEpochs = WarmStart.shortEpochs(plan))
}
