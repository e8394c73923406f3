package org.apache.spark.sql.tailrace

import scala.util.Try

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.streaming.WriteToStreamStatement
import org.apache.spark.sql.connector.catalog.Table
import org.apache.spark.sql.execution.python.streaming.PythonForeachWriter
import org.apache.spark.sql.execution.streaming.RealTimeTrigger
import org.apache.spark.sql.execution.streaming.sources.ForeachWriterTable

import tailrace.TailraceException
import tailrace.support.{Sinks, Support, Unsupported}

/** Refuses, inside `start()`, a sink that is not in the support registry. */
object CheckRealTimeSink extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = {
    plan match {
      case statement: WriteToStreamStatement if statement.trigger.isInstanceOf[RealTimeTrigger] =>
        val support = supportOf(statement.sink)
        support.level match {
          case Unsupported(reason, remedy) =>
            throw new TailraceException(
              "TAILRACE_UNSUPPORTED_SINK",
              s"the sink '${support.name}' cannot be used in Real-Time Mode: $reason",
              remedy)
          case _ =>
        }
      case _ =>
    }
    plan
  }

  private def supportOf(sink: Table): Support = sink match {
    case foreach: ForeachWriterTable[_] if foreach.writer.isInstanceOf[PythonForeachWriter] => Sinks.PythonForeach
    // Sinks of the first data source API throw when they are asked for their name.
    case _ => Sinks.of(sink.getClass.getName, Try(sink.name).getOrElse(sink.getClass.getSimpleName))
  }
}
