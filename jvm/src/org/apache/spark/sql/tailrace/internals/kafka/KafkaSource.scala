package org.apache.spark.sql.tailrace.internals.kafka

import java.util.{Map => JMap}

import scala.util.Try

import org.apache.spark.sql.connector.read.InputPartition
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream
import org.apache.spark.sql.tailrace.internals.names.ByName

// The connector's classes are known by their shape: the plugin is compiled without it, and users may bring another
// version. What has another shape is treated like a source that is not Kafka.

/** What the Kafka connector knows of a partition that is to be read. */
final case class KafkaPartition(topicPartition: AnyRef, topic: String, partition: Int, fromOffset: Long)

object KafkaPartition extends ByName {
  private val TopicPartition = "org.apache.kafka.common.TopicPartition"
  private val topicName = method(TopicPartition, "topic")
  private val number = method(TopicPartition, "partition")
  private val inputPartition = classNamed("org.apache.spark.sql.kafka010.KafkaBatchInputPartition")
  private val offsetRange = method(inputPartition.className, "offsetRange")
  private val topicPartition = method("org.apache.spark.sql.kafka010.KafkaOffsetRange", "topicPartition")
  private val fromOffset = method("org.apache.spark.sql.kafka010.KafkaOffsetRange", "fromOffset")

  /** Of a partition as Kafka's client has it. */
  def topicOf(topicPartition: AnyRef): String = topicName.call(topicPartition)
  def partitionOf(topicPartition: AnyRef): Int = number.call[Integer](topicPartition)

  def of(partition: InputPartition): Option[KafkaPartition] =
    if (!inputPartition.isClassOf(partition)) None
    else Try {
      val range = offsetRange.call[AnyRef](partition)
      val at = topicPartition.call[AnyRef](range)
      KafkaPartition(at, topicOf(at), partitionOf(at), fromOffset.call[java.lang.Long](range))
    }.toOption
}

object KafkaStream extends ByName {
  private val Strategy = "org.apache.spark.sql.kafka010.ConsumerStrategy"
  private val stream = classNamed("org.apache.spark.sql.kafka010.KafkaMicroBatchStream")
  private val offsetReader = method(stream.className, "kafkaOffsetReader")
  private val driverKafkaParams = method("org.apache.spark.sql.kafka010.KafkaOffsetReader", "driverKafkaParams")
  // One for each of the two ways in which the connector asks for offsets.
  private val consumerStrategies = Seq("KafkaOffsetReaderAdmin", "KafkaOffsetReaderConsumer").map { reader =>
    field[AnyRef](s"org.apache.spark.sql.kafka010.$reader", "consumerStrategy")
  }
  private val createAdmin = method(Strategy, "createAdmin", "java.util.Map")
  private val createConsumer = method(Strategy, "createConsumer", "java.util.Map")
  private val assignedPartitions =
    method(Strategy, "assignedTopicPartitions", "org.apache.kafka.clients.admin.Admin")

  def isKafka(stream: MicroBatchStream): Boolean = this.stream.isClassOf(stream)

  /** How to reach the brokers of the stream. */
  def clientParams(stream: MicroBatchStream): Option[JMap[String, Object]] =
    if (!isKafka(stream)) None
    else Try(driverKafkaParams.call[JMap[String, Object]](offsetReader.call[AnyRef](stream))).toOption

  /** The partitions that the stream would read now, as its brokers say. */
  def partitionsOf(stream: MicroBatchStream, settings: JMap[String, Object]): Set[AnyRef] = {
    val strategy = strategyOf(stream)
    val admin = createAdmin.call[AutoCloseable](strategy, settings)
    try assignedPartitions.call[Set[AnyRef]](strategy, admin)
    finally admin.close()
  }

  /** A consumer of what the stream reads, made as the stream makes its own. */
  def openConsumer(stream: MicroBatchStream, settings: JMap[String, Object]): SourceConsumer =
    new SourceConsumer(createConsumer.call[AutoCloseable](strategyOf(stream), settings))

  private def strategyOf(stream: MicroBatchStream): AnyRef = {
    val reader = offsetReader.call[AnyRef](stream)
    consumerStrategies.find(_.isIn(reader)).getOrElse(consumerStrategies.head).of(reader)
  }
}
