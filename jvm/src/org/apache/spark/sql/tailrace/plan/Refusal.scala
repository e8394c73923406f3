package org.apache.spark.sql.tailrace.plan

import tailrace.TailraceException
import tailrace.support.{Support, Unsupported}

/** Why something cannot run in Real-Time Mode, and what to do instead. */
final case class Refusal(problem: String, fix: String)

object Refusal {

  def ofOperator(operator: Support): Option[Refusal] = Option(operator).collect {
    case Support(_, name, _, Unsupported(reason, fix), _) =>
      Refusal(s"$name cannot run in Real-Time Mode: $reason", fix)
  }

  def ofSink(sink: Support): Option[Refusal] = Option(sink).collect {
    case Support(_, name, _, Unsupported(reason, fix), _) =>
      Refusal(s"the sink '$name' cannot be used in Real-Time Mode: $reason", fix)
  }

  /** One error that lists everything in a query that cannot run in Real-Time Mode. */
  def of(operators: Seq[Support], sink: Option[Support] = None): Option[TailraceException] = {
    val ofOperators = operators.distinctBy(_.name).flatMap(one => ofOperator(one).map(one.name -> _))
    val all = ofOperators ++ sink.flatMap(one => ofSink(one).map(s"sink '${one.name}'" -> _))
    Option.when(all.nonEmpty) {
      new TailraceException(
        if (ofOperators.nonEmpty) "TAILRACE_UNSUPPORTED_OPERATOR" else "TAILRACE_UNSUPPORTED_SINK",
        all.map(_._2.problem).mkString("\n"),
        all.map { case (name, refusal) => s"$name: ${refusal.fix}" }.mkString("\n     "))
    }
  }
}
