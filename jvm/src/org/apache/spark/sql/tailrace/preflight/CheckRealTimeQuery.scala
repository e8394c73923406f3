package org.apache.spark.sql.tailrace.preflight

import scala.util.Try

import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Union}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.streaming.WriteToStreamStatement
import org.apache.spark.sql.connector.catalog.Table
import org.apache.spark.sql.execution.streaming.RealTimeTrigger
import org.apache.spark.sql.tailrace.conf.TailraceConf
import org.apache.spark.sql.tailrace.operators.python.PythonForeachTable
import org.apache.spark.sql.tailrace.plan.{LogicalOperators, OutputModes, Refusal, SessionWindows, StreamJoins}
import org.apache.spark.sql.tailrace.sink.ExactlyOnceTable
import org.apache.spark.sql.tailrace.sink.identity.MatchIdentity

import tailrace.support.{Sinks, Support}

/**
 * Inside `start()`: refuses a sink that is not in the support registry and operations that cannot run in Real-Time
 * Mode, all at once. Also replaces Spark's Python `foreach`.
 */
object CheckRealTimeQuery extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan match {
    case statement: WriteToStreamStatement if statement.trigger.isInstanceOf[RealTimeTrigger] =>
      TailraceConf.check(conf.getAllConfs)
      val sink = PythonForeachTable.replacing(statement.sink).getOrElse(statement.sink)
      Refusal.of(LogicalOperators.refused(statement.inputQuery), Some(supportOf(sink))).foreach(throw _)
      statement.inputQuery.collect { case union: Union => StreamJoins.stateSparkDoesNotKnow(union) }.flatten.headOption
        .foreach(_ => throw StateBeforeUnion.error)
      if (sink.isInstanceOf[ExactlyOnceTable]) {
        MatchIdentity.refusal(statement.inputQuery).foreach(throw _)
      }
      SessionWindows.statusWithoutSession(statement.inputQuery).foreach(throw _)
      OutputModes.admitted(statement.copy(sink = sink))
    case statement: WriteToStreamStatement =>
      statement.sink match {
        case table: ExactlyOnceTable if !OutputModes.isInRealTime(statement) => throw table.needsRealTime
        case _ => statement
      }
    case _ => plan
  }

  // Sinks of the first data source API throw when they are asked for their name.
  def supportOf(sink: Table): Support =
    Sinks.of(sink.getClass.getName, Try(sink.name).getOrElse(sink.getClass.getSimpleName))
}
