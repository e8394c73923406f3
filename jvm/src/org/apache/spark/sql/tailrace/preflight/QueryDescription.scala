package org.apache.spark.sql.tailrace.preflight

import org.apache.spark.sql.tailrace.internals.kafka.KafkaRefusal

import tailrace.contract.RawJson

/**
 * What can be known about a query before it runs; mirrors `tailrace/contract/query_description.py`. A `line` is the
 * user's own `file:line`.
 */
private[tailrace] final case class QueryDescription(
    columns: Seq[Column],
    epochMs: Long,
    shortestEpochMs: Long,
    sources: Seq[SourceDescription],
    sameSourceTwice: Seq[String],
    refused: Seq[RefusedOperator],
    sparkRefuses: Option[String],
    notPlanned: Option[String],
    stages: Seq[Stage],
    stateful: Boolean,
    state: Seq[StateDescription],
    stateBeforeUnion: Seq[PluginRefusal],
    streamJoins: Seq[StreamJoin],
    identityObstacles: Seq[PluginRefusal],
    mayAppend: Boolean,
    watermarks: Seq[Watermark],
    windows: Seq[TimeWindowDescription],
    python: Seq[PythonFunction],
    checkpoint: Option[CheckpointDescription],
    stateObstacle: Option[String],
    writer: Option[WriterDescription],
    running: Boolean)

private[tailrace] final case class Column(name: String, sqlType: String)

/**
 * @param kind `unreachable` (no broker answers in time), `no_topic`, `denied` (with a code and a fix), `refused` or
 *             `unknown`
 */
private[tailrace] final case class SourceProblem(
    kind: String,
    message: String,
    code: Option[String] = None,
    fix: Option[String] = None)

private[tailrace] object SourceProblem {
  def of(refusal: KafkaRefusal): SourceProblem =
    SourceProblem("denied", refusal.problem, Some(refusal.code), Some(refusal.fix))
}

/** @param agesMs the ages of records that arrived just now */
private[tailrace] final case class SourceDescription(
    name: String,
    label: String,
    options: Map[String, String],
    realTime: Boolean,
    topics: Seq[String],
    agesMs: Seq[Long],
    problem: Option[SourceProblem],
    line: Option[String])

/** @param tableBytes Spark's estimate of the size of a join's static side, if it decided how the sides are joined */
private[tailrace] final case class RefusedOperator(
    name: String,
    problem: String,
    fix: String,
    line: Option[String],
    tableBytes: Option[BigInt])

/** @param tasks the task slots that the stage holds; unknown if the source's partitions could not be counted */
private[tailrace] final case class Stage(
    number: Int,
    inputs: Seq[Int],
    sources: Seq[String],
    operators: Seq[Operator],
    tasks: Option[Int])

/**
 * @param ours     Tailrace's own operator, which replaces one of Spark's that would hold rows back
 * @param overlaps an epoch with it can begin while the one before still runs
 */
private[tailrace] final case class Operator(
    name: String,
    ours: Boolean,
    stateful: Boolean,
    overlaps: Boolean,
    line: Option[String])

/** A stateful operator, and whether a watermark bounds its state. */
private[tailrace] final case class StateDescription(name: String, bounded: Boolean, line: Option[String])

private[tailrace] final case class StreamJoin(kind: String, outer: Boolean, line: Option[String])

/** What the plugin itself would refuse when the query starts. */
private[tailrace] final case class PluginRefusal(
    code: String,
    title: String,
    problem: String,
    fix: String,
    line: Option[String])

private[tailrace] final case class Watermark(column: String, delayMs: Long, line: Option[String])

private[tailrace] final case class TimeWindowDescription(lengthMs: Long, line: Option[String])

private[tailrace] final case class PythonFunction(
    name: String,
    pickled: Boolean,
    inBatches: Boolean,
    line: Option[String])

/**
 * @param epoch     the last committed one
 * @param offsets   the position in each source after that epoch, as the source wrote it
 * @param operators Spark's names of the stateful operators
 */
private[tailrace] final case class CheckpointDescription(
    location: String,
    problem: Option[String],
    exists: Boolean,
    queryId: Option[String],
    epoch: Option[Long],
    offsets: Seq[Option[RawJson]],
    commitVersion: Option[String],
    operators: Seq[String])

/** Has `realTimeMs` in Real-Time Mode, `intervalMs` in micro-batch, and neither if the query ends by itself. */
private[tailrace] final case class TriggerDescription(realTimeMs: Option[Long], intervalMs: Option[Long])

/** `problem` and `fix` are empty for a supported sink. */
private[tailrace] final case class SinkDescription(name: String, supported: Boolean, problem: String, fix: String)

/** @param outputProblems why the sink could not write to its output, for sinks that look at it before the start */
private[tailrace] final case class WriterDescription(
    format: String,
    outputMode: String,
    trigger: TriggerDescription,
    options: Map[String, String],
    sink: SinkDescription,
    errorPolicyProblems: Seq[PluginRefusal],
    outputProblems: Seq[PluginRefusal])
