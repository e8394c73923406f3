package org.apache.spark.sql.tailrace.preflight

import java.util.Locale

import org.apache.spark.api.python.PythonEvalType
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinHelper
import org.apache.spark.sql.types.LongType
import org.apache.spark.sql.tailrace.plan.{SessionWindows, StreamJoins}

/** A query's state, event time and Python code, from its logical plan. */
private[preflight] object QueryParts {
  private val MicrosPerMilli = 1000

  /** The stateful operators, and whether a watermark bounds their state. */
  def state(query: LogicalPlan): Seq[StateDescription] = streaming(query).collect {
    case node: Deduplicate => stateful("dropDuplicates", isBounded(keysOf(node)), node)
    case node: DeduplicateWithinWatermark => stateful("dropDuplicatesWithinWatermark", bounded = true, node)
    case node: Aggregate if SessionWindows.isOne(node) =>
      stateful("session window", isBounded(node.groupingExpressions), node)
    case node: Aggregate => stateful("aggregation", isBounded(node.groupingExpressions), node)
    // SELECT DISTINCT, which becomes an aggregation.
    case node: Distinct => stateful("aggregation", isBounded(node.output), node)
    case node @ (_: TransformWithState | _: TransformWithStateInPySpark) =>
      stateful("transformWithState", bounded = true, node)
    case node: Join if StreamJoins.isOne(node) => stateful("join", isBounded(node), node)
  }

  /** The stateful operators below a union. */
  def stateBeforeUnion(query: LogicalPlan): Seq[LogicalPlan] = streaming(query).collect { case union: Union =>
    streaming(union).collect {
      case node @ (_: Aggregate | _: TransformWithState | _: TransformWithStateInPySpark | _: Deduplicate)
          if node.isStateful =>
        node
    } ++ StreamJoins.stateSparkDoesNotKnow(union)
  }.flatten

  def streamJoins(query: LogicalPlan): Seq[StreamJoin] = {
    val outer = StreamJoins.outer(query)
    StreamJoins.in(query).map { join =>
      StreamJoin(join.joinType.sql.toLowerCase(Locale.ROOT), outer.exists(_ eq join), SourceLines.of(join))
    }
  }

  /** True if time bounds the state of both sides of a join. */
  private def isBounded(join: Join): Boolean = join match {
    case ExtractEquiJoinKeys(_, leftKeys, rightKeys, condition, _, left, right, _) =>
      val (leftTime, rightTime) = StreamingSymmetricHashJoinHelper.getStateWatermark(
        left.output,
        right.output,
        leftKeys,
        rightKeys,
        condition,
        Some(0L),
        allowMultipleEventTimeColumns = true)
      leftTime.isDefined && rightTime.isDefined
    case _ => false
  }

  def watermarks(query: LogicalPlan): Seq[Watermark] = streaming(query).collect { case node: EventTimeWatermark =>
    Watermark(node.eventTime.name, EventTimeWatermark.getDelayMs(node.delay), SourceLines.of(node))
  }

  /** The lengths of the time windows that rows are grouped by. */
  def windows(query: LogicalPlan): Seq[TimeWindowDescription] = streaming(query).flatMap { node =>
    node.expressions.flatMap(_.collect {
      case alias: Alias if alias.metadata.contains(TimeWindow.marker) => lengthOf(alias).map(_ -> node)
    }.flatten)
  }.map { case (micros, node) => TimeWindowDescription(micros / MicrosPerMilli, SourceLines.of(node)) }

  /** The Python functions on the streaming path, and whether their rows are pickled. */
  def python(query: LogicalPlan): Seq[PythonFunction] = streaming(query).flatMap { node =>
    node.expressions.flatMap(_.collect { case call: PythonUDF => call }).map { call =>
      PythonFunction(
        call.name,
        pickled = call.evalType == PythonEvalType.SQL_BATCHED_UDF,
        inBatches = InBatches(call.evalType),
        lineOf(call).orElse(SourceLines.of(node)))
    }
  }

  private val InBatches = Set(PythonEvalType.SQL_MAP_PANDAS_ITER_UDF, PythonEvalType.SQL_MAP_ARROW_ITER_UDF)

  private def streaming(query: LogicalPlan): Seq[LogicalPlan] = query.collect { case node if node.isStreaming => node }

  private def stateful(name: String, bounded: Boolean, node: LogicalPlan): StateDescription =
    StateDescription(name, bounded, SourceLines.of(node))

  private def keysOf(node: Deduplicate): Seq[Expression] =
    // Any column may be a key if Spark has not chosen the keys yet.
    if (node.keys.nonEmpty) node.keys else node.child.output

  private def isBounded(keys: Seq[Expression]): Boolean = keys.exists {
    case named: NamedExpression => named.metadata.contains(EventTimeWatermark.delayKey)
    case other => other.references.exists(_.metadata.contains(EventTimeWatermark.delayKey))
  }

  /** A window is a struct of its start and its end, which is the start plus the length. */
  private def lengthOf(window: Alias): Option[Long] = window.child match {
    case struct: CreateNamedStruct =>
      struct.valExprs.lastOption.flatMap(_.collectFirst { case Add(_, Literal(micros: Long, LongType), _) => micros })
    case _ => None
  }

  private def lineOf(call: PythonUDF): Option[String] = call.origin.pysparkErrorContext.map(_._2).filter(_.nonEmpty)
}
