package org.apache.spark.sql.tailrace.metrics

import org.apache.kafka.clients.producer.{Callback, RecordMetadata}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.write.DataWriter
import org.apache.spark.sql.tailrace.internals.kafka.KafkaRowWriter

/** A writer that calls back when the broker has acknowledged a row. */
trait ReportsAcknowledgements {
  /** Called for each row that is sent from now on, unless null. */
  var observer: Callback
}

/** Records when the broker acknowledges a timed row. */
private[metrics] abstract class KafkaAcknowledgements(probe: SinkProbe) {
  private val delays = probe.acknowledgements()

  def expect(series: PartitionSeries, recordedAt: Long, handedAt: Long, weight: Int): Unit =
    use(new Acknowledged(probe, delays, series, recordedAt, handedAt, weight))

  /** The next rows are not timed. */
  def expectNone(): Unit = use(null)

  protected def use(observer: Callback): Unit
}

private final class OfOwnSink(writer: ReportsAcknowledgements, probe: SinkProbe) extends KafkaAcknowledgements(probe) {
  override protected def use(observer: Callback): Unit = writer.observer = observer
}

/** For a timed row, replaces the sink's callback with one that knows the row and also calls the sink's. */
private final class OfSparksSink(writer: KafkaRowWriter, probe: SinkProbe) extends KafkaAcknowledgements(probe) {
  override protected def use(observer: Callback): Unit =
    writer.use(if (observer == null) writer.original else new Both(writer.original, observer))
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
    series: PartitionSeries,
    recordedAt: Long,
    handedAt: Long,
    weight: Int)
    extends Callback {
  // Runs in the producer's thread. A writer has only one producer, so only one thread writes to its series.
  override def onCompletion(metadata: RecordMetadata, failure: Exception): Unit = {
    if (failure == null) {
      val now = MicroClock.now()
      delays.record(now - handedAt, weight)
      probe.delivered(series, recordedAt, now, weight)
    }
  }
}

private[metrics] object KafkaAcknowledgements {
  /** None for other sinks, and for a connector that keeps its callback elsewhere. */
  def of(writer: DataWriter[InternalRow], probe: SinkProbe): Option[KafkaAcknowledgements] = writer match {
    case own: ReportsAcknowledgements => Some(new OfOwnSink(own, probe))
    case other => KafkaRowWriter.of(other).map(new OfSparksSink(_, probe))
  }
}
