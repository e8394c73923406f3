package org.apache.spark.sql.tailrace.preflight

import java.util.Locale

import scala.jdk.CollectionConverters._
import scala.util.Try

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
import org.apache.spark.sql.catalyst.plans.logical.{Join, LogicalPlan}
import org.apache.spark.sql.catalyst.trees.TreeNode
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap
import org.apache.spark.sql.classic.{DataStreamWriter, Dataset}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.datasources.v2.RealTimeStreamScanExec
import org.apache.spark.sql.execution.streaming.{ProcessingTimeTrigger, RealTimeTrigger}
import org.apache.spark.sql.execution.streaming.runtime.StreamingQueryWrapper
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.streaming.{OutputMode, Trigger}
import org.apache.spark.sql.tailrace.epoch.rules.RefuseUnsupported
import org.apache.spark.sql.tailrace.errors.ErrorPolicy
import org.apache.spark.sql.tailrace.internals.{SecretOptions, StreamWriterFields}
import org.apache.spark.sql.tailrace.plan.{LogicalOperators, OutputModes, Refusal, SessionWindows}
import org.apache.spark.sql.tailrace.sink.identity.{MatchIdentity, MatchObstacle, NoRowIdentity}
import org.apache.spark.sql.tailrace.sink.postgresql.{TableCheck, TailracePostgresql}
import org.apache.spark.sql.tailrace.sink.redis.{RedisCheck, TailraceRedis}
import org.apache.spark.sql.tailrace.sink.store.StoreProblem
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import tailrace.contract.JsonEncoder
import tailrace.support.{Operators, Support, Unsupported}

/**
 * Describes a query before it runs, as JSON; Python judges what it means. Nothing is started, and neither the sink nor
 * the checkpoint is written to. With `sampleMs`, arriving records are watched for that long.
 */
object Preflight {

  /** Describes a writer as it would start now. `epochMs` is the epoch if its trigger is not a real-time one. */
  def ofWriter(writer: DataStreamWriter[_], epochMs: Long, sampleMs: Long): String = {
    val fields = new WriterFields(writer)
    val checkpoint = Checkpoint.of(fields.dataset.sparkSession, fields.options)
    val written = describe(fields.format, fields.outputMode, fields.trigger, fields.options, fields.sink)
    val described = describe(fields.dataset, epochOf(fields.trigger, epochMs), sampleMs, checkpoint)
    val problems = outputProblems(fields) ++ WriterRights.problems(fields, checkpoint.flatMap(_.description.queryId))
    JsonEncoder.encode(described.copy(writer = Some(written.copy(outputProblems = problems))))
  }

  /** What is wrong with the table of a sink that has one. Nothing is written. */
  private def outputProblems(fields: WriterFields): Seq[PluginRefusal] =
    StoreChecks.get(fields.format.toLowerCase(Locale.ROOT)).toSeq.flatMap { check =>
      val options = new CaseInsensitiveStringMap(fields.options.asJava)
      check(options, fields.dataset.schema).map(found =>
        PluginRefusal(found.code, s"sink ${fields.format}", found.problem, found.fix, None))
    }

  private val StoreChecks = Map[String, (CaseInsensitiveStringMap, StructType) => Seq[StoreProblem]](
    TailracePostgresql.Format -> TableCheck.problems,
    TailraceRedis.Format -> RedisCheck.problems)

  /** Describes a running query as if it were started in Real-Time Mode next time. */
  def ofRunning(query: StreamingQueryWrapper, epochMs: Long, sampleMs: Long): String = {
    val run = query.streamingQuery
    val dataset = Dataset.ofRows(run.sparkSession, run.analyzedPlan)
    val support = CheckRealTimeQuery.supportOf(run.sink)
    val options = Map("queryName" -> Option(run.name).getOrElse(run.id.toString))
    val written = describe(support.name, run.outputMode, run.trigger, options, support)
    val checkpoint = new Checkpoint(run.resolvedCheckpointRoot, run.sparkSession)
    val described = describe(dataset, epochOf(run.trigger, epochMs), sampleMs, Some(checkpoint))
    JsonEncoder.encode(described.copy(writer = Some(written), running = true))
  }

  def isRealTime(writer: DataStreamWriter[_]): Boolean =
    StreamWriterFields.triggerOf(writer).isInstanceOf[RealTimeTrigger]

  def optionsOf(writer: DataStreamWriter[_]): String =
    JsonEncoder.encode(withoutSecrets(new WriterFields(writer).options))

  /** The settings of a session. It begins with those of its application, from the builder and spark-submit. */
  def settingsOf(session: SparkSession): String = JsonEncoder.encode(session.conf.getAll)

  /** Describes a query whose sink is not known yet. */
  def ofQuery(dataset: Dataset[_], epochMs: Long, sampleMs: Long): String =
    JsonEncoder.encode(describe(dataset, epochMs, sampleMs, None))

  private def describe(
      dataset: Dataset[_],
      epochMs: Long,
      sampleMs: Long,
      checkpoint: Option[Checkpoint]): QueryDescription = {
    val query = dataset.queryExecution.analyzed
    val read = Sources.of(query)
    val access = CheckAccess.of(dataset.sparkSession)
    // The time is for all sources together.
    val each = if (read.isEmpty) 0 else sampleMs / read.distinct.length
    val sources = read.distinct.zipWithIndex.map { case (relation, number) =>
      relation -> Sources.look(relation, number, each, access)
    }.toMap
    val recorded = checkpoint.flatMap(_.settings)
    val rehearsal = new Rehearsal(dataset.sparkSession, query, epochMs, sources, recorded)
    val planned = rehearsal.planned
    val state = QueryParts.state(query)
    QueryDescription(
      columns = dataset.schema.fields.toSeq.map(column => Column(column.name, column.dataType.sql)),
      epochMs = epochMs,
      shortestEpochMs =
        dataset.sparkSession.sessionState.conf.getConf(SQLConf.STREAMING_REAL_TIME_MODE_MIN_BATCH_DURATION),
      sources = read.map(relation => describe(sources(relation), relation)),
      sameSourceTwice =
        (readTwice(read).map(sources(_).label) ++ planned.toOption.toSeq.flatMap(scannedTwice)).distinct,
      refused = refused(query, planned.toOption),
      sparkRefuses = sparkRefuses(query),
      notPlanned = planned.failed.toOption.map(messageOf),
      stages = planned.toOption.toSeq.flatMap(stages(_, query, sources.values.toSeq)),
      stateful = query.exists(_.isStateful) || state.nonEmpty,
      state = state,
      stateBeforeUnion = QueryParts.stateBeforeUnion(query).map(StateBeforeUnion.refusalOf),
      streamJoins = QueryParts.streamJoins(query),
      identityObstacles = identityObstacles(query, sources),
      mayAppend = OutputModes.mayAppend(query),
      watermarks = QueryParts.watermarks(query),
      windows = QueryParts.windows(query),
      python = QueryParts.python(query),
      checkpoint = checkpoint.map(_.description),
      stateObstacle =
        checkpoint.filter(_.hasState && planned.isSuccess).flatMap(rehearsal.stateObstacle).map(messageOf),
      writer = None,
      running = false)
  }

  private def readTwice[T](read: Seq[T]): Seq[T] = read.diff(read.distinct)

  /** A common table expression is one source in the query, but one source per reader in the plan. */
  private def scannedTwice(plan: SparkPlan): Seq[String] =
    readTwice(plan.collect { case scan: RealTimeStreamScanExec => scan.stream }).map(_.toString)

  private def epochOf(trigger: Trigger, otherwiseMs: Long): Long = trigger match {
    case RealTimeTrigger(durationMs) => durationMs
    case _ => otherwiseMs
  }

  private def describe(
      format: String,
      outputMode: OutputMode,
      trigger: Trigger,
      options: Map[String, String],
      sink: Support): WriterDescription =
    WriterDescription(
      format,
      outputMode.toString.toLowerCase(Locale.ROOT),
      describe(trigger),
      withoutSecrets(options),
      Refusal.ofSink(sink).fold(SinkDescription(sink.name, supported = true, "", "")) { refusal =>
        SinkDescription(sink.name, supported = false, refusal.problem, refusal.fix)
      },
      ErrorPolicy.problemsIn(CaseInsensitiveMap(options)).map(found =>
        PluginRefusal(found.code, "errors", found.problem, found.fix, None)),
      outputProblems = Nil)

  /** What leaves the JVM may be printed. */
  private def withoutSecrets(options: Map[String, String]): Map[String, String] =
    SecretOptions.hidden(options.filterNot { case (key, _) => key.equalsIgnoreCase("password") })

  /** Why an exactly-once sink could not recognize the query's rows after a failure. */
  private def identityObstacles(query: LogicalPlan, sources: Map[LogicalPlan, Source]): Seq[PluginRefusal] = {
    def refusal(title: String, found: NoRowIdentity, line: Option[String]) =
      PluginRefusal(NoRowIdentity.Code, title, found.problem, found.fix, line)
    val withoutOffsets = sources.toSeq.collect {
      case (relation, source) if source.realTime && source.name != "kafka" =>
        refusal(s"source ${source.name}", NoRowIdentity.ofSource(source.name), SourceLines.of(relation))
    }
    val inBatches = QueryParts.python(query).filter(_.inBatches).map(function =>
      refusal(s"function ${function.name}", NoRowIdentity.ofBatchFunctions, function.line))
    withoutOffsets ++ MatchIdentity.obstacles(query).map(describe) ++ inBatches
  }

  private def describe(obstacle: MatchObstacle): PluginRefusal =
    PluginRefusal(obstacle.code, obstacle.where, obstacle.problem, obstacle.fix, SourceLines.of(obstacle.node))

  private def describe(trigger: Trigger): TriggerDescription = trigger match {
    case RealTimeTrigger(durationMs) => TriggerDescription(Some(durationMs), None)
    case ProcessingTimeTrigger(intervalMs) => TriggerDescription(None, Some(intervalMs))
    case _ => TriggerDescription(None, None)
  }

  private def describe(source: Source, relation: LogicalPlan): SourceDescription =
    SourceDescription(
      source.name,
      source.label,
      withoutSecrets(source.options),
      source.realTime,
      source.topics,
      source.agesMs,
      source.problem,
      SourceLines.of(relation))

  /** What cannot run in Real-Time Mode. Operators that the planner chose are listed only if they add something new. */
  private def refused(query: LogicalPlan, planned: Option[SparkPlan]): Seq[RefusedOperator] = {
    val written = LogicalOperators.refusedNodes(query)
    val chosen = planned.toSeq.flatMap(RefuseUnsupported.supports).filter(_._1.level.isInstanceOf[Unsupported])
    // A sort-merge join comes with its sorts, a sort with its shuffle, and a limit with operators unknown to users.
    val alongWith = Set(Operators.Sort) ++ written.collectFirst { case (Operators.Sort, _) =>
      Operators.RangeRepartition
    }
    val known = chosen.filterNot { case (support, _) => written.exists(_._1.name == support.name) }
    val (causes, others) = known.partition { case (support, _) => support.group.nonEmpty && !alongWith(support) }
    val all = written ++ causes ++ (if (written.isEmpty && causes.isEmpty) others else Nil)
    all.distinctBy { case (support, node) => (support.name, SourceLines.of(node)) }.flatMap { case (support, node) =>
      refusal(support, node)
    }
  }

  private def refusal(support: Support, node: TreeNode[_]): Option[RefusedOperator] =
    Refusal.ofOperator(support).map { refusal =>
      RefusedOperator(support.name, refusal.problem, refusal.fix, SourceLines.of(node), tableBytes(node))
    }

  /** Spark's estimate of the size of a join's static side, if it decided how the sides are joined. */
  private def tableBytes(node: TreeNode[_]): Option[BigInt] = node match {
    case plan: SparkPlan =>
      plan.logicalLink.collect { case join: Join => Seq(join.left, join.right).find(!_.isStreaming) }.flatten
        .flatMap(side => Try(side.stats.sizeInBytes).toOption)
    case _ => None
  }

  private def stages(plan: SparkPlan, query: LogicalPlan, sources: Seq[Source]): Seq[Stage] =
    new PlannedStages(plan, query, sources.filter(_.partitions.isEmpty).map(_.label).toSet).stages

  /** What Spark refuses in any streaming query, or a session status without a session window. */
  private def sparkRefuses(query: LogicalPlan): Option[String] =
    SessionWindows.statusWithoutSession(query).orElse {
      Try(
        UnsupportedOperationChecker.checkForStreaming(
          SessionWindows.admitted(query),
          OutputModes.plannable(query))).failed.toOption
    }.map(messageOf)

  private def messageOf(failure: Throwable): String = Option(failure.getMessage).getOrElse(failure.toString)
}
