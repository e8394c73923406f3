package org.apache.spark.sql.tailrace.plan

import tailrace.TailraceException
import tailrace.support.{Support, Unsupported}

/** One error for everything in a query that cannot run in Real-Time Mode. */
object Refusal {

  def of(operators: Seq[Support], sink: Option[Support] = None): Option[TailraceException] = {
    val reasons = operators.distinctBy(_.name).collect { case Support(_, name, _, Unsupported(reason, remedy)) =>
      (s"$name cannot run in Real-Time Mode: $reason", s"$name: $remedy")
    }
    val ofSink = sink.toSeq.collect { case Support(_, name, _, Unsupported(reason, remedy)) =>
      (s"the sink '$name' cannot be used in Real-Time Mode: $reason", s"sink '$name': $remedy")
    }
    val all = reasons ++ ofSink
    Option.when(all.nonEmpty) {
      new TailraceException(
        if (reasons.nonEmpty) "TAILRACE_UNSUPPORTED_OPERATOR" else "TAILRACE_UNSUPPORTED_SINK",
        all.map(_._1).mkString("\n"),
        all.map(_._2).mkString("\n     "))
    }
  }
}
