package org.apache.spark.sql.tailrace.sink.kafka

import java.util.Locale

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.{Inner, JoinType, LeftSemi}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.TreePattern.CURRENT_LIKE
import org.apache.spark.sql.tailrace.plan.StreamJoins

import tailrace.TailraceException

/** One reason, where it is, and what to do about it. */
final case class MatchObstacle(code: String, where: String, problem: String, fix: String, node: LogicalPlan)

/**
 * Whether the matches of a join of two streams can be known again by their content: if all of them come again whatever the order
 * of the rows, and with the same content. Where they go next is the task's own business: it alone knows what it has written.
 */
object MatchIdentity {
  private val NoIdentity = "TAILRACE_NO_ROW_IDENTITY"
  private val NotDeterministic = "TAILRACE_NOT_DETERMINISTIC"
  private val Plainly = "write with format(\"kafka\"), which may write rows twice after a failure."

  /** Their matches never change, however many rows follow. */
  val Kinds: Set[JoinType] = Set(Inner, LeftSemi)

  /** Of a query as it was written; none if it joins no streams. */
  def obstacles(query: LogicalPlan): Seq[MatchObstacle] = {
    val joins = StreamJoins.in(query)
    if (joins.isEmpty) Nil else joins.flatMap(kind) ++ otherState(query, joins) ++ shuffles(query) ++ changes(query)
  }

  /** For a query that nothing else has checked. */
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
      NoIdentity,
      name,
      s"a row of a $name that has matched nothing leaves when an epoch ends, and can match when the epoch is computed again and " +
        s"ends later, so that ${TailraceKafka.Format} could not know it again.",
      s"use an inner or a left semi join, or $Plainly",
      join)
  }

  private def otherState(query: LogicalPlan, joins: Seq[Join]): Seq[MatchObstacle] = query.collect {
    case node if node.isStreaming && keepsState(node) && !joins.headOption.exists(_ eq node) =>
      val name = nameOf(node)
      MatchObstacle(
        NoIdentity,
        name,
        s"what $name makes of a row depends on those before it, and beside a join of two streams their order is another one when they " +
          s"are computed again, so that ${TailraceKafka.Format} could not know the result again.",
        s"write the rows to a topic in between, and go on from there with a second query; or $Plainly",
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
        NoIdentity,
        "repartition",
        s"repartition behind a join of two streams can bring a match to another task when it is computed again, and ${TailraceKafka.Format} " +
          "knows in each task what that one has written.",
        s"leave it out, or repartition before the join; or $Plainly",
        node)
  }

  /** On the static side of a further join as well: Spark reads that anew in each epoch. */
  private def changes(query: LogicalPlan): Seq[MatchObstacle] = for {
    node <- query.collect { case node => node }
    expression <- node.expressions
    cause <- expression.collect { case part if changes(part) => part }
  } yield {
    val (name, fix) = cause match {
      case udf: PythonUDF =>
        s"the function ${udf.name}, which is marked as non-deterministic," -> "leave out asNondeterministic() if equal arguments always give equal results; or "
      case other =>
        s"${other.prettyName}()" -> "take what you need from the records, such as their timestamp or an id; or "
    }
    MatchObstacle(
      NotDeterministic,
      nameOf(cause),
      s"$name gives something else when a match of two streams is computed again, so that ${TailraceKafka.Format} could not know it " +
        "again by its content.",
      s"$fix$Plainly",
      node)
  }

  private def nameOf(cause: Expression): String = cause match {
    case udf: PythonUDF => s"function ${udf.name}"
    case other => s"${other.prettyName}()"
  }

  private def changes(part: Expression): Boolean =
    (!part.deterministic && part.children.forall(_.deterministic)) || isClock(part)

  /** Spark gives each epoch a time of its own, also one that is repeated. */
  private def isClock(part: Expression): Boolean = part match {
    case _: CurrentCatalog | _: CurrentDatabase | _: CurrentUser | _: CurrentTimeZone => false
    case other => other.containsPattern(CURRENT_LIKE) && !other.children.exists(_.containsPattern(CURRENT_LIKE))
  }
}
