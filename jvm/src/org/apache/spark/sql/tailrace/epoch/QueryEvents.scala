package org.apache.spark.sql.tailrace.epoch

import org.apache.spark.sql.streaming.StreamingQueryListener
import org.apache.spark.sql.streaming.StreamingQueryListener._
import org.apache.spark.sql.tailrace.epoch.drain.Drains
import org.apache.spark.sql.tailrace.epoch.warmup.WarmStart
import org.apache.spark.sql.tailrace.metrics.LiveFigures
import org.apache.spark.sql.tailrace.sink.kafka.SinkRuns

/** Tells [[LiveFigures]] of the streaming queries of a session; Spark makes one for each session. */
final class QueryEvents extends StreamingQueryListener {
  override def onQueryStarted(event: QueryStartedEvent): Unit = LiveFigures.started(event)
  override def onQueryProgress(event: QueryProgressEvent): Unit = LiveFigures.progressed(event)
  override def onQueryIdle(event: QueryIdleEvent): Unit = ()
  override def onQueryTerminated(event: QueryTerminatedEvent): Unit = {
    WarmStart.forget(event.runId)
    Drains.withdraw(event.runId.toString)
    SinkRuns.forget(event.runId)
    LiveFigures.terminated(event)
  }
}
