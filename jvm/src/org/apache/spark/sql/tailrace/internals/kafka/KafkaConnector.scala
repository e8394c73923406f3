package org.apache.spark.sql.tailrace.internals.kafka

import java.util.{Map => JMap}

import scala.util.control.NonFatal

import org.apache.spark.sql.tailrace.internals.names.ByName

/** Spark's delegation tokens for Kafka. */
private[internals] object KafkaConnector extends ByName {
  private val Updater = "org.apache.spark.kafka010.KafkaConfigUpdater"
  private val updater = constructor(Updater, "java.lang.String", "scala.collection.immutable.Map")
  private val setAuthentication = method(Updater, "setAuthenticationConfigIfNeeded")
  private val build = method(Updater, "build")
  // Appears in the connector's log.
  private val Module = "tailrace-kafka"

  /** The settings of a client with the tokens; none if the connector has another shape. */
  def withDelegationTokens(settings: Map[String, String]): Option[JMap[String, Object]] =
    try {
      val made = updater.make(Module, settings)
      setAuthentication.call[AnyRef](made)
      Some(build.call[JMap[String, Object]](made))
    } catch {
      case NonFatal(_) | _: LinkageError => None
    }
}
