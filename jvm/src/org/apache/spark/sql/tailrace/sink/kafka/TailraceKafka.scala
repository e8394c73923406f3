package org.apache.spark.sql.tailrace.sink.kafka

import org.apache.spark.sql.connector.write.LogicalWriteInfo
import org.apache.spark.sql.connector.write.streaming.StreamingWrite
import org.apache.spark.sql.tailrace.sink.{ExactlyOnceFormat, ExactlyOnceTable}

/** `format("tailrace-kafka")`: Spark's Kafka sink, but each row is written exactly once. */
class TailraceKafka extends ExactlyOnceFormat(TailraceKafka.Format) {
  override protected def newTable(): ExactlyOnceTable = new TailraceKafkaTable
}

object TailraceKafka {
  val Format = "tailrace-kafka"
}

final class TailraceKafkaTable extends ExactlyOnceTable(TailraceKafka.Format) {
  // Like the name of its base class, one that Spark knows.
  override def name(): String = "KafkaTable"

  override protected def newWrite(info: LogicalWriteInfo, report: Map[String, String] => Unit): StreamingWrite =
    new ExactlyOnceWrite(
      SinkOptions.of(info.options()),
      info.schema(),
      info.queryId(),
      counts => report(counts.byName))
}
