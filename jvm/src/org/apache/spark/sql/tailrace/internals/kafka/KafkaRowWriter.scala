package org.apache.spark.sql.tailrace.internals.kafka

import java.lang.reflect.Field

import scala.util.control.NonFatal

import org.apache.kafka.clients.producer.Callback

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.write.DataWriter
import org.apache.spark.sql.tailrace.internals.names.ByName

/** The one callback that a writer of Spark's Kafka sink gives to the producer with each row. */
private[tailrace] final class KafkaRowWriter private (writer: DataWriter[InternalRow], field: Field) {
  val original: Callback = field.get(writer).asInstanceOf[Callback]

  /** For the rows that follow. */
  def use(callback: Callback): Unit = field.set(writer, callback)
}

private[tailrace] object KafkaRowWriter extends ByName {
  private val callbackField = field[Callback]("org.apache.spark.sql.kafka010.KafkaRowWriter", "callback")

  /** None for another sink, and for a connector that keeps its callback elsewhere. */
  def of(writer: DataWriter[InternalRow]): Option[KafkaRowWriter] =
    if (!callbackField.isIn(writer)) None
    else
      try {
        val opened = new KafkaRowWriter(writer, callbackField.open(writer))
        // A JVM that does not allow it says so here, and not at each row.
        opened.use(opened.original)
        Some(opened)
      } catch {
        case NonFatal(_) | _: LinkageError => None
      }
}
