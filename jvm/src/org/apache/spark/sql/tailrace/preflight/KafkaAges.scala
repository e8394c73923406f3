package org.apache.spark.sql.tailrace.preflight

import java.util.{HashMap => JHashMap}

import scala.util.control.NonFatal

import org.apache.spark.internal.Logging
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream
import org.apache.spark.sql.tailrace.internals.kafka.{KafkaStream, SourceConsumer}

/** How old records are when they can first be read: the delay of the producer, before the query can do anything. */
private[preflight] object KafkaAges extends Logging {

  /** The ages in milliseconds of the records that arrive meanwhile; none if the broker sets their timestamps. */
  def during(
      milliseconds: Long,
      stream: MicroBatchStream,
      partitions: Set[AnyRef],
      overridden: KafkaPartitions.Overridden): Seq[Long] =
    KafkaStream.clientParams(stream).map(overridden).toSeq.flatMap { params =>
      val own = new JHashMap[String, Object](params)
      // The connector requires a group to create a consumer. Nothing is ever read or committed as a group.
      own.put("group.id", "tailrace-check")
      own.put("enable.auto.commit", "false")
      try look(milliseconds, KafkaStream.openConsumer(stream, own), partitions)
      catch {
        // The ages are only a hint.
        case NonFatal(failure) =>
          logDebug("The age of records is unknown", failure)
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
