package org.apache.spark.sql.tailrace.epoch

import java.util.UUID

import org.apache.spark.SparkContext
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.datasources.v2.{LowLatencyClock, RealTimeStreamScanExec}
import org.apache.spark.sql.execution.streaming.runtime.{MicroBatchExecution, StreamExecution}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.tailrace.conf.TailraceConf
import org.apache.spark.sql.tailrace.epoch.context.{
  EpochContext, EpochId, OriginTracking, Overlap, RunningEpoch, ScanControl, WaitingRecords
}
import org.apache.spark.sql.tailrace.epoch.drain.Drains
import org.apache.spark.sql.tailrace.epoch.overlap.{EpochsAhead, OverlapSupport}
import org.apache.spark.sql.tailrace.errors.ErrorPolicy
import org.apache.spark.sql.tailrace.internals.QueryOptions
import org.apache.spark.sql.tailrace.metrics.{EpochLatency, LiveFigures, TaskIdentity}
import org.apache.spark.sql.tailrace.operators.python.RealTimeTransformWithStateExec
import org.apache.spark.sql.tailrace.origin.{ReplayedRows, SourcePartitions, SourceScans, UsesOrigins}
import org.apache.spark.sql.tailrace.plan.Stages
import org.apache.spark.sql.tailrace.sink.{ExactlyOnceSink, PreparedSink, SinkEpoch, SourceEnds}

/**
 * Everything that has to happen on the driver before an epoch is planned, in this order. It runs once per epoch in the
 * query's own thread, and may block. No other part of planning has effects: the rules only see the context.
 */
private[epoch] object PrepareEpoch {
  def apply(plan: SparkPlan): EpochContext = {
    // What the user has set: a wrong value ends the query before anything has happened.
    val settings = EpochSettings.of(plan)
    val query = queryOf(plan)
    val onError = errorPolicyOf(query, plan)
    // The sink and the live figures are shown the operators that will run. The rules are pure, so looking is free.
    val operators = EpochRules.replaceOperators(plan, EpochContext.operatorsOnly(onError, settings.addsOperators))
    val id = epochOfThisThread(plan.session.sparkContext)

    id.foreach(Runs.begins)
    // An epoch that was started ahead is running, and is committed before the run is held.
    id.filterNot(EpochsAhead.isStarted).foreach(waitIfDrained)
    val sink = ExactlyOnceSink.in(operators).filter(_ => settings.addsOperators)
    val written = for (sink <- sink; id <- id) yield prepare(sink, SinkEpoch(operators, id.run, id.epoch, onError))

    // Asked when older runs write no more: whatever they have read is among these records.
    val waiting = id.filterNot(EpochsAhead.isStarted).flatMap(waitingFor(_, operators))
    val needsOrigins = sink.isDefined || needsThem(onError, operators)
    val tracking = trackingOf(plan, settings, needsOrigins, replayed = written.flatMap(_.replayed))
    // Also if no row is timed: readiness and drains are about every real-time query.
    id.foreach(registerFigures(_, plan, operators, timed = tracking.exists(_.isTimed)))
    id.foreach(tellOfWarmup(_, settings.shortEpochs))
    val overlap = for {
      id <- id
      if waiting.isEmpty
      reason = reasonAgainstOverlap(settings, operators, query).orElse(sink.flatMap(_.reasonAgainstOverlap))
      if !reason.exists(tellOfBoundary(id, _))
    } yield Overlap(id, epochMsOf(plan), follows = None)

    EpochContext(
      onError,
      settings.addsOperators,
      tracking,
      shortenToMs = shortened(id, settings).orElse(waiting.map(_ => WarmStart.ShortMs)),
      scans = id.map(id => ScanControl(id.run, written.fold(PreparedSink.NoRecords)(_.replayUntil), waiting)),
      overlap,
      refusesUnsupported = true)
  }

  /**
   * For a plan that is made while the epoch before is still running, in a thread of its own. It changes nothing and
   * does not wait: what has an effect happens when the query's own thread prepares the same epoch. Only the sink is
   * told, since it is about to be written to.
   */
  def ahead(plan: SparkPlan, running: RunningEpoch): EpochContext = {
    val settings = EpochSettings.of(plan)
    val onError = errorPolicyOf(queryOf(plan), plan)
    val operators = EpochRules.replaceOperators(plan, EpochContext.operatorsOnly(onError, settings.addsOperators))
    val id = epochOfThisThread(plan.session.sparkContext)
    val sink = ExactlyOnceSink.in(operators)
    for (sink <- sink; id <- id) sink.prepareAhead(SinkEpoch(operators, id.run, id.epoch, onError))
    EpochContext(
      onError,
      settings.addsOperators,
      trackingOf(plan, settings, sink.isDefined || needsThem(onError, operators), replayed = None),
      shortenToMs = shortened(id, settings),
      scans = id.map(id => ScanControl(id.run, PreparedSink.NoRecords, waiting = None)),
      overlap = id.map(Overlap(_, epochMsOf(plan), Some(running))),
      refusesUnsupported = true)
  }

  /** For a plan that is never run. The settings are read, so that `check` finds a wrong value before the start. */
  def rehearsal(plan: SparkPlan): EpochContext = EpochContext.rehearsal(EpochSettings.of(plan).addsOperators)

  /** Before the first epochs are made shorter. */
  private def epochMsOf(plan: SparkPlan): Long =
    plan.collect { case scan: RealTimeStreamScanExec => scan.batchDurationMs }.min

  /** None outside a query's own thread, for example when another thread asks Spark to explain the query. */
  private def epochOfThisThread(context: SparkContext): Option[EpochId] =
    for {
      run <- Option(context.getLocalProperty(TaskIdentity.RunKey))
      epoch <- Option(context.getLocalProperty(MicroBatchExecution.BATCH_ID_KEY)).flatMap(_.toLongOption)
    } yield EpochId(run, epoch)

  /** None outside a query's own thread. */
  private def queryOf(plan: SparkPlan): Option[MicroBatchExecution] =
    Option(plan.session.sparkContext.getLocalProperty(StreamExecution.QUERY_ID_KEY))
      .flatMap(id => Option(plan.session.sharedState.activeStreamingQueries.get(UUID.fromString(id))))
      .collect { case query: MicroBatchExecution => query }

  private def errorPolicyOf(query: Option[MicroBatchExecution], plan: SparkPlan): ErrorPolicy =
    query.fold[ErrorPolicy](ErrorPolicy.Fail)(query => ErrorPolicy.of(QueryOptions.of(query), query.id, plan))

  private def trackingOf(
      plan: SparkPlan,
      settings: EpochSettings,
      needsOrigins: Boolean,
      replayed: Option[ReplayedRows]): Option[OriginTracking] =
    Option.when(settings.addsOperators && (settings.timesRows || needsOrigins)) {
      OriginTracking(
        new SourcePartitions,
        everyRow = settings.tracksEveryRow || needsOrigins,
        latency = Option.when(settings.timesRows)(EpochLatency.registered(plan.session.sparkContext)),
        replayed)
    }

  private def needsThem(onError: ErrorPolicy, operators: SparkPlan): Boolean =
    onError.skipsBadRecords || operators.exists(usesOrigins)

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

  /**
   * What is read before timers fire. A record that has been waiting since the query went down may move a timer that is
   * due, and a replay may set a timer that one of its next records moves.
   */
  private def waitingFor(id: EpochId, operators: SparkPlan): Option[WaitingRecords] = {
    val hasTimers = operators.exists {
      case operator: RealTimeTransformWithStateExec => operator.firesTimersByClock
      case _ => false
    }
    val now = LowLatencyClock.getTimeMillis()
    if (hasTimers && SourceEnds.areKnown(operators) && Runs.mayBeBehind(id, now)) {
      val starts = SourceScans.startsIn(operators)
      val until = SourceEnds.of(operators).filter { case (at, last) => starts.get(at).exists(_ <= last) }
      val durationMs = SourceScans.in(operators).map(_.batchDurationMs).max
      Option.when(until.nonEmpty) {
        Runs.catchesUp(id, now)
        WaitingRecords(until, math.max(durationMs, LeastCatchUpMs))
      }
    } else {
      None
    }
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
  private def tellOfWarmup(id: EpochId, shortEpochs: Int): Unit = {
    val before = Runs.epochsBefore(id)
    if (shortEpochs > 0 && (before == 0 || before == shortEpochs)) {
      LiveFigures.warming(id.run, id.epoch, isWarming = before < shortEpochs)
    }
  }

  private def shortened(id: Option[EpochId], settings: EpochSettings): Option[Long] =
    Option.when(id.exists(Runs.epochsBefore(_) < settings.shortEpochs))(WarmStart.ShortMs)

  private def reasonAgainstOverlap(
      settings: EpochSettings,
      operators: SparkPlan,
      query: Option[MicroBatchExecution]): Option[String] =
    if (!settings.overlaps) Some(s"${TailraceConf.EpochsOverlap.key} is off")
    else if (!settings.addsOperators) Some("Spark's own allowlist is in force")
    else query.fold(Option("the query is unknown"))(OverlapSupport.reasonAgainst(operators, _))

  private val LeastCatchUpMs = 60000L

  /** Always true. */
  private def tellOfBoundary(id: EpochId, reason: String): Boolean = {
    // There is no boundary before the first epoch of a run.
    if (Runs.epochsBefore(id) > 0) {
      LiveFigures.boundary(id.run, id.epoch, Some(reason))
    }
    true
  }
}

/**
 * @param addsOperators  see [[EpochContext]]
 * @param timesRows      whether rows are timed on their way
 * @param tracksEveryRow whether the user asks for the origin of every row
 * @param shortEpochs    how many epochs at the start of a run are short
 * @param overlaps       whether an epoch may begin while the one before still runs
 */
private final case class EpochSettings(
    addsOperators: Boolean,
    timesRows: Boolean,
    tracksEveryRow: Boolean,
    shortEpochs: Int,
    overlaps: Boolean)

private object EpochSettings {
  def of(plan: SparkPlan): EpochSettings = EpochSettings(
    addsOperators = !plan.conf.getConf(SQLConf.STREAMING_REAL_TIME_MODE_ALLOWLIST_CHECK),
    timesRows = TailraceConf.LatencyEnabled.valueIn(plan.conf),
    tracksEveryRow = TailraceConf.OriginEveryRow.valueIn(plan.conf),
    shortEpochs = WarmStart.shortEpochs(plan),
    overlaps = TailraceConf.EpochsOverlap.valueIn(plan.conf))
}
