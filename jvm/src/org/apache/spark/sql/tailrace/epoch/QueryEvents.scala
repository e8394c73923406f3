package org.apache.spark.sql.tailrace.epoch

import java.util.UUID

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.RealTimeTrigger
import org.apache.spark.sql.streaming.StreamingQueryListener
import org.apache.spark.sql.streaming.StreamingQueryListener._
import org.apache.spark.sql.tailrace.metrics.LiveFigures

/**
 * Hears from Spark when a query starts, progresses and ends: [[LiveFigures]] is told of it, and a run that is over is
 * forgotten. Spark makes one for each session.
 */
final class QueryEvents extends StreamingQueryListener {
  override def onQueryStarted(event: QueryStartedEvent): Unit = LiveFigures.started(event, isRealTime(event.id))
  override def onQueryProgress(event: QueryProgressEvent): Unit = LiveFigures.progressed(event)
  override def onQueryIdle(event: QueryIdleEvent): Unit = ()
  override def onQueryTerminated(event: QueryTerminatedEvent): Unit = {
    Runs.ended(event.runId.toString)
    LiveFigures.terminated(event)
  }

  /** Spark lists a query before it tells of its start, and shares the list among the sessions of an application. */
  private def isRealTime(id: UUID): Boolean = SparkSession.getDefaultSession
    .flatMap(session => Option(session.sharedState.activeStreamingQueries.get(id)))
    .exists(_.trigger.isInstanceOf[RealTimeTrigger])
}
