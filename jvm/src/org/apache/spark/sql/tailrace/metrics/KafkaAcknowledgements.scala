package org.apache.spark.sql.tailrace.metrics

import java.lang.reflect.Field

import scala.util.control.NonFatal

import org.apache.kafka.clients.producer.{Callback, RecordMetadata}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.write.DataWriter

/** A writer that calls back when the broker has acknowledged a row. */
trait TellsOfAcknowledgements {
  /** Called for each row that is sent from now on; null for nobody. */
  var observer: Callback
}

/** Learns when the broker has acknowledged a row that is timed. */
private[metrics] abstract class KafkaAcknowledgements(probe: SinkProbe) {
  private val delays = probe.acknowledgements()

  def expect(series: PlaceSeries, recordedAt: Long, handedAt: Long, weight: Int): Unit =
    use(new Acknowledged(probe, delays, series, recordedAt, handedAt, weight))

  /** The rows that follow are not timed. */
  def expectNone(): Unit = use(null)

  protected def use(observer: Callback): Unit
}

private final class OfOwnSink(writer: TellsOfAcknowledgements, probe: SinkProbe) extends KafkaAcknowledgements(probe) {
  override protected def use(observer: Callback): Unit = writer.observer = observer
}

/**
 * Spark's Kafka sink gives its one callback to the producer with each row; for a row that is timed another takes its
 * place, which knows the row and calls the sink's own.
 */
private final class OfSparksSink(writer: DataWriter[InternalRow], callback: Field, probe: SinkProbe)
    extends KafkaAcknowledgements(probe) {
  private val sinks = callback.get(writer).asInstanceOf[Callback]

  override protected def use(observer: Callback): Unit =
    callback.set(writer, if (observer == null) sinks else new Both(sinks, observer))
}

private final class Both(first: Callback, second: Callback) extends Callback {
  override def onCompletion(metadata: RecordMetadata, failure: Exception): Unit = {
    first.onCompletion(metadata, failure)
    second.onCompletion(metadata, failure)
  }
}

private final class Acknowledged(
    probe: SinkProbe,
    delays: Series,
    series: PlaceSeries,
    recordedAt: Long,
    handedAt: Long,
    weight: Int)
    extends Callback {
  // In the thread of the producer, which a writer has one of, so that its series have one writer too.
  override def onCompletion(metadata: RecordMetadata, failure: Exception): Unit = {
    if (failure == null) {
      val now = MicroClock.now()
      delays.record(now - handedAt, weight)
      probe.delivered(series, recordedAt, now, weight)
    }
  }
}

private[metrics] object KafkaAcknowledgements {
  private val RowWriter = "org.apache.spark.sql.kafka010.KafkaRowWriter"

  /** None for another sink, and for a connector that keeps its callback elsewhere. */
  def of(writer: DataWriter[InternalRow], probe: SinkProbe): Option[KafkaAcknowledgements] = writer match {
    case own: TellsOfAcknowledgements => Some(new OfOwnSink(own, probe))
    case other => ofSparks(other, probe)
  }

  private def ofSparks(writer: DataWriter[InternalRow], probe: SinkProbe): Option[KafkaAcknowledgements] = {
    val classes = Iterator.iterate[Class[_]](writer.getClass)(_.getSuperclass).takeWhile(_ != null)
    classes.find(_.getName == RowWriter).flatMap { rowWriter =>
      try {
        val callback = rowWriter.getDeclaredField("callback")
        callback.setAccessible(true)
        val acknowledgements = new OfSparksSink(writer, callback, probe)
        // A JVM that does not allow it says so here, and not at each row.
        acknowledgements.expectNone()
        Some(acknowledgements)
      } catch {
        case NonFatal(_) | _: LinkageError => None
      }
    }
  }
}
