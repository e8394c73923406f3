package org.apache.spark.sql.tailrace.internals

import java.util.{Map => JMap}

import scala.language.reflectiveCalls
import scala.util.Try

import org.json4s.{DefaultFormats, Formats}
import org.json4s.jackson.Serialization

import org.apache.spark.sql.connector.read.InputPartition
import org.apache.spark.sql.connector.read.streaming.{MicroBatchStream, Offset}

// The connector's classes are known by their shape: the plugin is compiled without it, and users may bring another
// version. What has another shape is treated like a source that is not Kafka.

/** What the Kafka connector knows of a partition that is to be read. */
final case class KafkaPartition(topicPartition: Object, topic: String, partition: Int, fromOffset: Long)

object KafkaPartition {
  private type TopicPartition = { def topic(): String; def partition(): Int }
  private type Range = { def topicPartition(): TopicPartition; def fromOffset(): Long }
  private type InKafka = { def offsetRange(): Range }

  def of(partition: InputPartition): Option[KafkaPartition] =
    if (partition.getClass.getName != "org.apache.spark.sql.kafka010.KafkaBatchInputPartition") {
      None
    } else {
      Try {
        val range = partition.asInstanceOf[InKafka].offsetRange()
        val place = range.topicPartition()
        KafkaPartition(place, place.topic(), place.partition(), range.fromOffset())
      }.toOption
    }
}

object KafkaStream {
  private type Reader = { def driverKafkaParams(): JMap[String, Object] }
  private type InKafka = { def kafkaOffsetReader(): Reader }

  def isKafka(stream: MicroBatchStream): Boolean =
    stream.getClass.getName == "org.apache.spark.sql.kafka010.KafkaMicroBatchStream"

  /** How to reach the brokers of the stream. */
  def clientParams(stream: MicroBatchStream): Option[JMap[String, Object]] =
    if (!isKafka(stream)) None
    else Try(stream.asInstanceOf[InKafka].kafkaOffsetReader().driverKafkaParams()).toOption

  /** By topic and partition, as the stream's offsets say it. */
  def offsetsIn(offset: Offset): Map[(String, Int), Long] = {
    implicit val formats: Formats = DefaultFormats
    Try(Serialization.read[Map[String, Map[String, Long]]](offset.json())).getOrElse(Map.empty).toSeq.flatMap {
      case (topic, offsets) => offsets.map { case (partition, at) => (topic, partition.toInt) -> at }
    }.toMap
  }

  /** How the stream chooses its topics and makes its clients. */
  def consumerStrategy(stream: MicroBatchStream): Object = {
    val reader = stream.asInstanceOf[InKafka].kafkaOffsetReader()
    val field = reader.getClass.getDeclaredField("consumerStrategy")
    field.setAccessible(true)
    field.get(reader)
  }
}
