package org.apache.spark.sql.tailrace.sink.postgresql

import java.sql.Connection

import org.apache.spark.sql.execution.streaming.runtime.StreamExecution
import org.apache.spark.sql.tailrace.sink.SinkEpoch
import org.apache.spark.sql.tailrace.sink.identity.QueryFingerprint
import org.apache.spark.sql.tailrace.sink.store._
import org.apache.spark.sql.types.StructType

/** Driver-side: the sink's state of each run that writes to it. */
private[postgresql] object PostgresqlRuns extends StoreRuns[Connection, TableRow]

/** Writes to a table. The journal is a table next to it. */
private[postgresql] final class PostgresqlWrite(
    options: PostgresqlOptions,
    schema: StructType,
    query: String,
    report: EpochCounts => Unit)
    extends StoreWrite[Connection, TableRow](TailracePostgresql.Format, query, PostgresqlRuns, report) {

  override protected def claim(
      first: SinkEpoch,
      execution: StreamExecution): (Store[Connection, TableRow], ClaimedRun) = {
    val (table, claimed) = Retries.inTransaction(options.server, options.retryMs) { connection: Connection =>
      val table = TableCheck.require(connection, options, schema)
      val state = StateTables.of(options, table)
      state.create(connection)
      (table, state.claim(connection, query, first.epoch, table.oid))
    }
    val store = PostgresqlStore(
      options,
      table,
      StateTables.of(options, table),
      schema,
      QueryFingerprint.of(Some(table.quoted), schema.fieldNames.toSet, execution.analyzedPlan),
      first.plan.session.sessionState.conf.sessionLocalTimeZone)
    (store, claimed)
  }
}
