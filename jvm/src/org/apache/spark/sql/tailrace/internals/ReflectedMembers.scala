package org.apache.spark.sql.tailrace.internals

import scala.util.Try

import org.apache.spark.sql.tailrace.internals.kafka.{
  KafkaAdmin, KafkaConnector, KafkaErrors, KafkaPartition, KafkaRefusals, KafkaRowWriter, KafkaStream, OwnedBroker,
  SourceConsumer
}
import org.apache.spark.sql.tailrace.internals.names.ByName

/**
 * What the plugin reaches by name in Spark, its Kafka connector and Kafka's client: an upgrade begins with this list.
 */
object ReflectedMembers {
  private val inSession: Seq[ByName] = Seq(
    EvictionWatermark,
    KafkaAdmin,
    KafkaConnector,
    KafkaErrors,
    KafkaPartition,
    KafkaRefusals,
    KafkaRowWriter,
    KafkaStream,
    PythonForeach,
    QueryOptions,
    SourceConsumer,
    StateServerOutput,
    StateStoreRdd,
    StreamWriterFields)

  /** Called in a broker's own JVM. */
  private val inBroker: Seq[ByName] = Seq(OwnedBroker)

  def ofSession: Array[String] = describe(inSession)
  def ofBroker: Array[String] = describe(inBroker)

  /** What this JVM does not have of the former. */
  def missing: Array[String] =
    inSession.flatMap(_.members).filter(member => Try(member.find()).isFailure).map(_.describe).sorted.toArray

  private def describe(users: Seq[ByName]): Array[String] = users.flatMap(_.members).map(_.describe).sorted.toArray
}
