package org.apache.spark.sql.tailrace.preflight

import java.util.{HashMap => JHashMap}

import scala.util.control.NonFatal

import org.apache.spark.internal.Logging
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream
import org.apache.spark.sql.tailrace.internals.kafka.{KafkaStream, SourceConsumer}

/** How old records are when they can first be read: what a producer's waiting costs, before the query has begun. */
private[preflight] object KafkaAges extends Logging {

  /** In milliseconds, of the records that come in while somebody looks; none if the broker sets their time. */
  def during(milliseconds: Long, stream: MicroBatchStream, partitions: Set[AnyRef]): Seq[Long] =
    KafkaStream.clientParams(stream).toSeq.flatMap { params =>
      val own = new JHashMap[String, Object](params)
      // The connector's way to make a consumer asks for one; nothing is ever read or committed as a group.
      own.put("group.id", "tailrace-check")
      own.put("enable.auto.commit", "false")
      try look(milliseconds, KafkaStream.openConsumer(stream, own), partitions)
      catch {
        // It is no more than a hint.
        case NonFatal(failure) =>
          logDebug("The age of records is not known", failure)
          Nil
      }
    }

  private def look(milliseconds: Long, consumer: SourceConsumer, partitions: Set[AnyRef]): Seq[Long] =
    try {
      consumer.readFromEndOf(partitions)
      val end = System.currentTimeMillis() + milliseconds
      Iterator
        .continually(end - System.currentTimeMillis())
        .takeWhile(_ > 0)
        .flatMap { left =>
          val created = consumer.createTimes(left)
          val now = System.currentTimeMillis()
          created.map(now - _)
        }
        .toList
    } finally consumer.close()
}
