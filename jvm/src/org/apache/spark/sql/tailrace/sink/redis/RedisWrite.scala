package org.apache.spark.sql.tailrace.sink.redis

import org.apache.spark.sql.execution.streaming.runtime.StreamExecution
import org.apache.spark.sql.tailrace.internals.RedisConnection
import org.apache.spark.sql.tailrace.sink.SinkEpoch
import org.apache.spark.sql.tailrace.sink.identity.QueryFingerprint
import org.apache.spark.sql.tailrace.sink.store._
import org.apache.spark.sql.types.StructType

/** Driver-side: the sink's state of each run that writes to it. */
private[redis] object RedisRuns extends StoreRuns[RedisConnection, RedisRow]

/** Writes to keys of Redis. The journal is a key of its own. */
private[redis] final class RedisWrite(
    options: RedisOptions,
    schema: StructType,
    query: String,
    report: EpochCounts => Unit)
    extends StoreWrite[RedisConnection, RedisRow](TailraceRedis.Format, query, RedisRuns, report) {

  override protected def claim(
      first: SinkEpoch,
      execution: StreamExecution): (Store[RedisConnection, RedisRow], ClaimedRun) = {
    val session = first.plan.session
    val known = new KnownServer(execution.resolvedCheckpointRoot, session.sessionState.newHadoopConf())
    val mustKnow = options.failOnDataLoss && known.is(options.server.url)
    val state = new RedisState(query)
    val claimed = Retries.inTransaction(options.server, options.retryMs) { connection: RedisConnection =>
      RedisCheck.require(connection, options, schema)
      val number = state.claim(connection, first.epoch, mustKnow)
      ClaimedRun(number, state.readJournal(connection))
    }
    // Before the first row: from now on the server must know the query.
    known.set(options.server.url)
    val store = RedisStore(
      options,
      query,
      schema,
      QueryFingerprint.of(Some(options.output), schema.fieldNames.toSet, execution.analyzedPlan),
      session.sessionState.conf.sessionLocalTimeZone)
    (store, claimed)
  }
}
