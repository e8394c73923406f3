package org.apache.spark.sql.tailrace.internals.kafka

import java.lang.{Iterable => JIterable}
import java.time.Duration
import java.util.{Collection => JCollection}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.tailrace.internals.names.ByName

/** A consumer that the connector has made. */
private[tailrace] final class SourceConsumer(client: AutoCloseable) extends AutoCloseable {
  import SourceConsumer._

  def readFromEndOf(partitions: Set[AnyRef]): Unit = {
    val all: JCollection[AnyRef] = partitions.asJava
    unsubscribe.call[AnyRef](client)
    assign.call[AnyRef](client, all)
    seekToEnd.call[AnyRef](client, all)
  }

  /**
   * When producers made the records that come in now, in milliseconds; a record that the broker has dated is left
   * out.
   */
  def createTimes(withinMs: Long): Seq[Long] =
    poll.call[JIterable[AnyRef]](client, Duration.ofMillis(withinMs)).asScala.toList
      .filter(record => timestampType.call[AnyRef](record).toString == "CreateTime")
      .map(record => timestamp.call[java.lang.Long](record).longValue)

  override def close(): Unit = client.close()
}

private[tailrace] object SourceConsumer extends ByName {
  private val Client = "org.apache.kafka.clients.consumer.Consumer"
  private val Record = "org.apache.kafka.clients.consumer.ConsumerRecord"
  private val unsubscribe = method(Client, "unsubscribe")
  private val assign = method(Client, "assign", "java.util.Collection")
  private val seekToEnd = method(Client, "seekToEnd", "java.util.Collection")
  private val poll = method(Client, "poll", "java.time.Duration")
  private val timestamp = method(Record, "timestamp")
  private val timestampType = method(Record, "timestampType")
}
