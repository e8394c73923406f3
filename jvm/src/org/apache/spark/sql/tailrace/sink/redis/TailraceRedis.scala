package org.apache.spark.sql.tailrace.sink.redis

import org.apache.spark.sql.connector.write.LogicalWriteInfo
import org.apache.spark.sql.connector.write.streaming.StreamingWrite
import org.apache.spark.sql.tailrace.sink.{ExactlyOnceFormat, ExactlyOnceTable}

/** `format("tailrace-redis")`: writes rows to hashes, strings, sorted sets or streams, each exactly once. */
class TailraceRedis extends ExactlyOnceFormat(TailraceRedis.Format) {
  override protected def newTable(): ExactlyOnceTable = new TailraceRedisTable
}

object TailraceRedis {
  val Format = "tailrace-redis"
}

final class TailraceRedisTable extends ExactlyOnceTable(TailraceRedis.Format) {
  override protected def newWrite(info: LogicalWriteInfo, report: Map[String, String] => Unit): StreamingWrite =
    new RedisWrite(
      RedisOptions.of(info.options()),
      info.schema(),
      info.queryId(),
      counts => report(counts.byName))
}
