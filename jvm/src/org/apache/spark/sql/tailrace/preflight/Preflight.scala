package org.apache.spark.sql.tailrace.preflight

import java.util.Locale

import scala.util.Try

import org.json4s.JsonAST.{JArray, JNothing, JObject, JValue}
import org.json4s.JsonDSL._
import org.json4s.jackson.JsonMethods.{compact, render}

import org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
import org.apache.spark.sql.catalyst.plans.logical.{Join, LogicalPlan}
import org.apache.spark.sql.catalyst.trees.TreeNode
import org.apache.spark.sql.classic.{DataStreamWriter, Dataset}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.datasources.v2.RealTimeStreamScanExec
import org.apache.spark.sql.execution.streaming.{ProcessingTimeTrigger, RealTimeTrigger}
import org.apache.spark.sql.execution.streaming.runtime.StreamingQueryWrapper
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.streaming.{OutputMode, Trigger}
import org.apache.spark.sql.tailrace.epoch.rules.RefuseUnsupported
import org.apache.spark.sql.tailrace.internals.StreamWriterFields
import org.apache.spark.sql.tailrace.plan.{LogicalOperators, OutputModes, SessionWindows}
import org.apache.spark.sql.tailrace.sink.kafka.{MatchIdentity, MatchObstacle}

import tailrace.support.{Operators, Support, Unsupported}

/**
 * Everything that can be known of a query before it runs, as JSON; what it means is for Python to say. Nothing is
 * started, and neither the sink nor the checkpoint is touched. With `sampleMs` records are watched coming in for so long.
 */
object Preflight {

  /** Of a writer, as it would be started now; with another trigger than a real-time one as if it had this epoch. */
  def ofWriter(writer: DataStreamWriter[_], epochMs: Long, sampleMs: Long): String = {
    val fields = new WriterFields(writer)
    val checkpoint = Checkpoint.of(fields.dataset.sparkSession, fields.options)
    val written = describe(fields.format, fields.outputMode, fields.trigger, fields.options, fields.sink)
    compact(render(describe(
      fields.dataset,
      epochOf(fields.trigger, epochMs),
      sampleMs,
      checkpoint) ~ ("writer" -> written)))
  }

  /** Of a query that runs, as if it were started in Real-Time Mode next time. */
  def ofRunning(query: StreamingQueryWrapper, epochMs: Long, sampleMs: Long): String = {
    val run = query.streamingQuery
    val dataset = Dataset.ofRows(run.sparkSession, run.analyzedPlan)
    val support = CheckRealTimeQuery.supportOf(run.sink)
    val options = Map("queryName" -> Option(run.name).getOrElse(run.id.toString))
    val written = describe(support.name, run.outputMode, run.trigger, options, support)
    val checkpoint = new Checkpoint(run.resolvedCheckpointRoot, run.sparkSession)
    val running = describe(dataset, epochOf(run.trigger, epochMs), sampleMs, Some(checkpoint)) ~ ("writer" -> written)
    compact(render(running ~ ("running" -> true)))
  }

  def isRealTime(writer: DataStreamWriter[_]): Boolean =
    StreamWriterFields.triggerOf(writer).isInstanceOf[RealTimeTrigger]

  def optionsOf(writer: DataStreamWriter[_]): String = compact(render(new WriterFields(writer).options))

  /** Of a query whose sink is not known yet. */
  def ofQuery(dataset: Dataset[_], epochMs: Long, sampleMs: Long): String =
    compact(render(describe(dataset, epochMs, sampleMs, None)))

  private def describe(dataset: Dataset[_], epochMs: Long, sampleMs: Long, checkpoint: Option[Checkpoint]): JObject = {
    val query = dataset.queryExecution.analyzed
    val read = Sources.of(query)
    // However many there are, one does not look for longer.
    val each = if (read.isEmpty) 0 else sampleMs / read.distinct.length
    val sources = read.distinct.zipWithIndex.map { case (relation, number) =>
      relation -> Sources.look(relation, number, each)
    }.toMap
    val recorded = checkpoint.flatMap(_.settings)
    val rehearsal = new Rehearsal(dataset.sparkSession, query, epochMs, sources, recorded)
    val planned = rehearsal.planned
    ("columns" -> dataset.schema.fields.toSeq.map(column =>
      ("name" -> column.name) ~ ("type" -> column.dataType.sql))) ~
      ("epoch_ms" -> epochMs) ~
      ("shortest_epoch_ms" ->
        dataset.sparkSession.sessionState.conf.getConf(SQLConf.STREAMING_REAL_TIME_MODE_MIN_BATCH_DURATION)) ~
      ("sources" -> read.map(relation => describe(sources(relation), relation))) ~
      ("same_source_twice" -> (readTwice(read).map(sources(_).label) ++ planned.toOption.toSeq.flatMap(
        scannedTwice)).distinct) ~
      ("refused" -> refused(query, planned.toOption)) ~
      ("spark_refuses" -> sparkRefuses(query)) ~
      ("not_planned" -> planned.failed.toOption.map(messageOf)) ~
      ("stages" -> planned.toOption.map(stages(_, query, sources.values.toSeq)).getOrElse(JArray(Nil))) ~
      ("stateful" -> (query.exists(_.isStateful) || QueryParts.state(query).nonEmpty)) ~
      ("state" -> QueryParts.state(query)) ~
      ("state_before_union" -> QueryParts.stateBeforeUnion(query)) ~
      ("stream_joins" -> QueryParts.streamJoins(query)) ~
      ("match_obstacles" -> MatchIdentity.obstacles(query).map(describe)) ~
      ("may_append" -> OutputModes.mayAppend(query)) ~
      ("watermarks" -> QueryParts.watermarks(query)) ~
      ("windows" -> QueryParts.windows(query)) ~
      ("python" -> QueryParts.python(query)) ~
      ("checkpoint" -> checkpoint.map(_.json).getOrElse(JNothing)) ~
      ("state_obstacle" -> checkpoint.filter(_.hasState && planned.isSuccess).flatMap(rehearsal.stateObstacle).map(
        messageOf))
  }

  private def readTwice[T](read: Seq[T]): Seq[T] = read.diff(read.distinct)

  /** A common table expression is one source as it was written, and as many as it has readers once planned. */
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
      sink: Support): JObject =
    ("format" -> format) ~
      ("output_mode" -> outputMode.toString.toLowerCase(Locale.ROOT)) ~
      ("trigger" -> describe(trigger)) ~
      ("options" -> options) ~
      ("sink" -> describe(sink, None))

  private def describe(obstacle: MatchObstacle): JObject =
    ("code" -> obstacle.code) ~
      ("where" -> obstacle.where) ~
      ("problem" -> obstacle.problem) ~
      ("fix" -> obstacle.fix) ~
      ("line" -> SourceLines.of(obstacle.node))

  private def describe(trigger: Trigger): JObject = trigger match {
    case RealTimeTrigger(durationMs) => ("kind" -> "real time") ~ ("duration_ms" -> durationMs)
    case ProcessingTimeTrigger(intervalMs) => ("kind" -> "micro-batch") ~ ("interval_ms" -> intervalMs)
    case other => ("kind" -> "micro-batch") ~ ("text" -> other.toString)
  }

  private def describe(source: Source, relation: LogicalPlan): JObject =
    ("name" -> source.name) ~
      ("label" -> source.label) ~
      ("options" -> source.options) ~
      ("real_time" -> source.realTime) ~
      ("topics" -> source.topics) ~
      ("ages_ms" -> source.agesMs) ~
      ("problem" -> source.problem.map(problem => ("kind" -> problem.kind) ~ ("message" -> problem.message))) ~
      ("line" -> SourceLines.of(relation))

  private def describe(support: Support, line: Option[String]): JObject = {
    val (reason, remedy) = support.level match {
      case Unsupported(reason, remedy) => (Some(reason), Some(remedy))
      case _ => (None, None)
    }
    ("name" -> support.name) ~ ("supported" -> reason.isEmpty) ~ ("reason" -> reason) ~ ("remedy" -> remedy) ~
      ("line" -> line)
  }

  /** What cannot run in Real-Time Mode; of what the planner made of it, only what says something new. */
  private def refused(query: LogicalPlan, planned: Option[SparkPlan]): Seq[JObject] = {
    val written = LogicalOperators.refusedNodes(query)
    val chosen = planned.toSeq.flatMap(RefuseUnsupported.supports).filter(_._1.level.isInstanceOf[Unsupported])
    // A join that sorts brings its sorts along, and a sort its shuffle; a limit has operators that nobody has heard of.
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

  private def refusal(support: Support, node: TreeNode[_]): Option[JObject] = support.level match {
    case Unsupported(_, _) =>
      Some(describe(support, SourceLines.of(node)) ~ ("table_bytes" -> tableBytes(node).map(_.toString)))
    case _ => None
  }

  /** How large Spark takes the static side of a join to be, where that has decided how it is joined. */
  private def tableBytes(node: TreeNode[_]): Option[BigInt] = node match {
    case plan: SparkPlan =>
      plan.logicalLink.collect { case join: Join => Seq(join.left, join.right).find(!_.isStreaming) }.flatten
        .flatMap(side => Try(side.stats.sizeInBytes).toOption)
    case _ => None
  }

  private def stages(plan: SparkPlan, query: LogicalPlan, sources: Seq[Source]): JValue =
    new PlannedStages(plan, query, sources.filter(_.partitions.isEmpty).map(_.label).toSet).json

  /** What Spark refuses in any streaming query, and what would make no sense. */
  private def sparkRefuses(query: LogicalPlan): Option[String] =
    SessionWindows.statusWithoutSession(query).orElse {
      Try(
        UnsupportedOperationChecker.checkForStreaming(
          SessionWindows.admitted(query),
          OutputModes.plannable(query))).failed.toOption
    }.map(messageOf)

  private def messageOf(failure: Throwable): String = Option(failure.getMessage).getOrElse(failure.toString)
}
