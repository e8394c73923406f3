package org.apache.spark.sql.tailrace.internals.kafka

import java.util.{Map => JMap}

/** Parts of Spark's Kafka connector that are called by name: the plugin is compiled without it. */
object KafkaConnector {
  private val Updater = "org.apache.spark.kafka010.KafkaConfigUpdater"
  // Appears in the connector's log.
  private val Module = "tailrace-kafka"

  /** The settings of a client with Spark's delegation tokens; none if the connector has another shape. */
  def withDelegationTokens(settings: Map[String, String]): Option[JMap[String, Object]] = {
    val params: Map[String, Object] = settings
    try {
      val updater = Class.forName(Updater, true, Thread.currentThread().getContextClassLoader)
      val made = updater.getConstructors.head.newInstance(Module, params)
      updater.getMethod("setAuthenticationConfigIfNeeded").invoke(made)
      Some(updater.getMethod("build").invoke(made).asInstanceOf[JMap[String, Object]])
    } catch {
      case _: ReflectiveOperationException => None
    }
  }
}
