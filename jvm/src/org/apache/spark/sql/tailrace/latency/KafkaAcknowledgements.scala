package org.apache.spark.sql.tailrace.latency

import java.lang.reflect.Field

import scala.util.control.NonFatal

import org.apache.kafka.clients.producer.{Callback, RecordMetadata}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.write.DataWriter

/**
 * Learns when the broker has acknowledged a row that Spark's Kafka sink sent. The sink gives its one callback to the
 * producer with each row; for a row that is timed another takes its place, which knows the row and calls the sink's own.
 */
private[latency] final class KafkaAcknowledgements(writer: DataWriter[InternalRow], callback: Field, probe: SinkProbe) {
  private val sinks = callback.get(writer).asInstanceOf[Callback]
  private val delays = probe.acknowledgements()

  def expect(series: PlaceSeries, recordedAt: Long, handedAt: Long, weight: Int): Unit =
    callback.set(writer, new Acknowledged(sinks, probe, delays, series, recordedAt, handedAt, weight))

  /** The rows that follow are not timed. */
  def expectNone(): Unit = callback.set(writer, sinks)
}

private final class Acknowledged(
    sinks: Callback,
    probe: SinkProbe,
    delays: Series,
    series: PlaceSeries,
    recordedAt: Long,
    handedAt: Long,
    weight: Int)
    extends Callback {
  // In the thread of the producer, which a writer has one of, so that its series have one writer too.
  override def onCompletion(metadata: RecordMetadata, failure: Exception): Unit = {
    sinks.onCompletion(metadata, failure)
    if (failure == null) {
      val now = MicroClock.now()
      delays.record(now - handedAt, weight)
      probe.delivered(series, recordedAt, now, weight)
    }
  }
}

private[latency] object KafkaAcknowledgements {
  private val RowWriter = "org.apache.spark.sql.kafka010.KafkaRowWriter"

  /** None for another sink, and for a connector that keeps its callback elsewhere. */
  def of(writer: DataWriter[InternalRow], probe: SinkProbe): Option[KafkaAcknowledgements] = {
    val classes = Iterator.iterate[Class[_]](writer.getClass)(_.getSuperclass).takeWhile(_ != null)
    classes.find(_.getName == RowWriter).flatMap { rowWriter =>
      try {
        val callback = rowWriter.getDeclaredField("callback")
        callback.setAccessible(true)
        val acknowledgements = new KafkaAcknowledgements(writer, callback, probe)
        // A JVM that does not allow it says so here, and not at each row.
        acknowledgements.expectNone()
        Some(acknowledgements)
      } catch {
        case NonFatal(_) | _: LinkageError => None
      }
    }
  }
}
