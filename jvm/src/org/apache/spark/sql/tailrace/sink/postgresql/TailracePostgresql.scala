package org.apache.spark.sql.tailrace.sink.postgresql

import org.apache.spark.sql.connector.write.LogicalWriteInfo
import org.apache.spark.sql.connector.write.streaming.StreamingWrite
import org.apache.spark.sql.tailrace.sink.{ExactlyOnceFormat, ExactlyOnceTable}

/** `format("tailrace-postgresql")`: appends or upserts rows, each exactly once. */
class TailracePostgresql extends ExactlyOnceFormat(TailracePostgresql.Format) {
  override protected def newTable(): ExactlyOnceTable = new TailracePostgresqlTable
}

object TailracePostgresql {
  val Format = "tailrace-postgresql"
}

final class TailracePostgresqlTable extends ExactlyOnceTable(TailracePostgresql.Format) {
  override protected def newWrite(info: LogicalWriteInfo, report: Map[String, String] => Unit): StreamingWrite =
    new PostgresqlWrite(
      PostgresqlOptions.of(info.options()),
      info.schema(),
      info.queryId(),
      counts => report(counts.byName))
}
