package org.apache.spark.sql.tailrace.preflight

import java.lang.{Iterable => JIterable}
import java.time.Duration
import java.util.{Collection => JCollection, HashMap => JHashMap, Map => JMap}

import scala.jdk.CollectionConverters._
import scala.language.reflectiveCalls
import scala.util.control.NonFatal

import org.apache.spark.internal.Logging
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream
import org.apache.spark.sql.tailrace.internals.KafkaStream

/** How old records are when they can first be read: what a producer's waiting costs, before the query has begun. */
private[preflight] object KafkaAges extends Logging {
  private type Strategy = { def createConsumer(params: JMap[String, Object]): AutoCloseable }
  private type Consumer = {
    def unsubscribe(): Unit
    def assign(partitions: JCollection[_]): Unit
    def seekToEnd(partitions: JCollection[_]): Unit
    def poll(timeout: Duration): JIterable[Object]
  }
  private type Record = { def timestamp(): Long; def timestampType(): Object }

  /** In milliseconds, of the records that come in while somebody looks; none if the broker sets their time. */
  def during(milliseconds: Long, stream: MicroBatchStream, partitions: Set[Object]): Seq[Long] =
    KafkaStream.clientParams(stream).toSeq.flatMap { params =>
      val own = new JHashMap[String, Object](params)
      // The connector's way to make a consumer asks for one; nothing is ever read or committed as a group.
      own.put("group.id", "tailrace-check")
      own.put("enable.auto.commit", "false")
      try
        look(milliseconds, KafkaStream.consumerStrategy(stream).asInstanceOf[Strategy].createConsumer(own), partitions)
      catch {
        // It is no more than a hint.
        case NonFatal(failure) =>
          logDebug("The age of records is not known", failure)
          Nil
      }
    }

  private def look(milliseconds: Long, client: AutoCloseable, partitions: Set[Object]): Seq[Long] =
    try {
      val consumer = client.asInstanceOf[Consumer]
      consumer.unsubscribe()
      consumer.assign(partitions.asJava)
      consumer.seekToEnd(partitions.asJava)
      val end = System.currentTimeMillis() + milliseconds
      Iterator
        .continually(end - System.currentTimeMillis())
        .takeWhile(_ > 0)
        .flatMap { left =>
          val records = consumer.poll(Duration.ofMillis(left)).asScala.toList
          val now = System.currentTimeMillis()
          records.map(_.asInstanceOf[Record]).filter(_.timestampType().toString == "CreateTime").map(
            now - _.timestamp())
        }
        .toList
    } finally client.close()
}
