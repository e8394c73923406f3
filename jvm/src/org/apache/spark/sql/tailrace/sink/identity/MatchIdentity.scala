package org.apache.spark.sql.tailrace.sink.identity

import java.util.Locale

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.{Inner, JoinType, LeftSemi}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.TreePattern.CURRENT_LIKE
import org.apache.spark.sql.tailrace.plan.StreamJoins
import org.apache.spark.sql.tailrace.sink.ExactlyOnceTable.Otherwise

import tailrace.TailraceException

/** A reason why matches cannot be recognized, where it is in the query, and its fix. */
final case class MatchObstacle(code: String, where: String, problem: String, fix: String, node: LogicalPlan)

/**
 * Checks that replayed matches of two streams can be recognized by their content. A replay must make the same matches
 * with the same content whatever the order of the rows, and in the same task: a task knows only what it has written
 * itself.
 */
object MatchIdentity {
  import NoRowIdentity.Code

  private val NotDeterministic = "TAILRACE_NOT_DETERMINISTIC"

  /** Joins whose matches never change, however many rows follow. */
  val Kinds: Set[JoinType] = Set(Inner, LeftSemi)

  /** The obstacles in an analyzed query; none if it joins no streams. */
  def obstacles(query: LogicalPlan): Seq[MatchObstacle] = {
    val joins = StreamJoins.in(query)
    if (joins.isEmpty) Nil else joins.flatMap(kind) ++ otherState(query, joins) ++ shuffles(query) ++ changes(query)
  }

  /** The error for a query that no other check has seen. */
  def refusal(query: LogicalPlan): Option[TailraceException] = {
    val found = obstacles(query)
    found.headOption.map { first =>
      new TailraceException(
        first.code,
        found.map(_.problem).mkString("\n"),
        found.map(_.fix).distinct.mkString("\n     "))
    }
  }

  private def kind(join: Join): Option[MatchObstacle] = Option.when(!Kinds(join.joinType)) {
    val name = s"${join.joinType.sql.toLowerCase(Locale.ROOT)} join"
    MatchObstacle(
      Code,
      name,
      s"a row of a $name without a match is written when an epoch ends, but can find a match if the epoch is " +
        s"replayed and ends later, so an exactly-once sink could not recognize it.",
      s"use an inner or a left semi join, or $Otherwise",
      join)
  }

  private def otherState(query: LogicalPlan, joins: Seq[Join]): Seq[MatchObstacle] = query.collect {
    case node if node.isStreaming && keepsState(node) && !joins.headOption.exists(_ eq node) =>
      val name = nameOf(node)
      MatchObstacle(
        Code,
        name,
        s"the result of $name depends on the order of its rows, and a replay of a join of two streams changes that " +
          s"order, so an exactly-once sink could not recognize the result.",
        s"write the rows to a topic in between and continue from there with a second query, or $Otherwise",
        node)
  }

  private def keepsState(node: LogicalPlan): Boolean = node match {
    case _: Distinct => true
    case other => other.isStateful
  }

  private def nameOf(node: LogicalPlan): String = node match {
    case _: Join => "a second join"
    case _: Deduplicate => "dropDuplicates"
    case _: DeduplicateWithinWatermark => "dropDuplicatesWithinWatermark"
    case _: Aggregate | _: Distinct => "an aggregation"
    case _ => "transformWithState"
  }

  private def shuffles(query: LogicalPlan): Seq[MatchObstacle] = query.collect {
    case node: RepartitionOperation if StreamJoins.in(node).nonEmpty =>
      MatchObstacle(
        Code,
        "repartition",
        "after a join of two streams, repartition can send a replayed match to another task, but each task of an " +
          "exactly-once sink recognizes only what it has written itself.",
        s"remove it or repartition before the join, or $Otherwise",
        node)
  }

  /** Includes the static side of a further join, which Spark reads again in each epoch. */
  private def changes(query: LogicalPlan): Seq[MatchObstacle] = for {
    node <- query.collect { case node => node }
    expression <- node.expressions
    cause <- expression.collect { case part if changes(part) => part }
  } yield {
    val (name, fix) = cause match {
      case udf: PythonUDF =>
        s"the function ${udf.name}, which is marked as non-deterministic," ->
          "remove asNondeterministic() if equal arguments always give equal results, or "
      case other =>
        s"${other.prettyName}()" -> "take the value from the records, for example their timestamp or an id, or "
    }
    MatchObstacle(
      NotDeterministic,
      nameOf(cause),
      s"$name gives another result when a match of two streams is replayed, so an exactly-once sink could not " +
        "recognize the match by its content.",
      s"$fix$Otherwise",
      node)
  }

  private def nameOf(cause: Expression): String = cause match {
    case udf: PythonUDF => s"function ${udf.name}"
    case other => s"${other.prettyName}()"
  }

  private def changes(part: Expression): Boolean =
    (!part.deterministic && part.children.forall(_.deterministic)) || isClock(part)

  /** Spark gives each epoch a new current time, including one that is replayed. */
  private def isClock(part: Expression): Boolean = part match {
    case _: CurrentCatalog | _: CurrentDatabase | _: CurrentUser | _: CurrentTimeZone => false
    case other => other.containsPattern(CURRENT_LIKE) && !other.children.exists(_.containsPattern(CURRENT_LIKE))
  }
}
