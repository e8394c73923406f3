package org.apache.spark.sql.tailrace.internals.kafka

import java.util.{HashMap => JHashMap, Locale, Map => JMap}

import scala.jdk.CollectionConverters._

/** How to reach Kafka's brokers. Two with equal options share a producer. */
trait ClientOptions extends Serializable {
  import ClientOptions._

  /** Kafka's own settings, without Spark's prefix. */
  def kafka: Map[String, String]

  /** Further settings, for producers only. */
  protected def ofProducers: Map[String, String] = Map.empty

  def producer(transactionalId: Option[String]): JMap[String, Object] = {
    val id = transactionalId.map("transactional.id" -> _)
    withDelegationTokens(
      kafka ++ ofProducers ++ id ++ Map(
        "enable.idempotence" -> "true",
        "acks" -> "all",
        "key.serializer" -> s"$Serialization.ByteArraySerializer",
        "value.serializer" -> s"$Serialization.ByteArraySerializer"))
  }

  def consumer(readCommitted: Boolean): JMap[String, Object] = withDelegationTokens(
    forAnyClient(kafka) ++ Map(
      "isolation.level" -> (if (readCommitted) "read_committed" else "read_uncommitted"),
      "enable.auto.commit" -> "false",
      "auto.offset.reset" -> "earliest",
      "key.deserializer" -> s"$Serialization.ByteArrayDeserializer",
      "value.deserializer" -> s"$Serialization.ByteArrayDeserializer"))
}

/** The options of a source, for clients of our own. */
final case class SourceClientOptions(kafka: Map[String, String]) extends ClientOptions {
  // Dead letters are as large as the source's records. How large a record may be is for its topic to say.
  override protected def ofProducers: Map[String, String] =
    Map("max.request.size" -> ClientOptions.MaxRequestBytes, "buffer.memory" -> ClientOptions.MaxRequestBytes)

  // Passwords are among them.
  override def toString: String = "SourceClientOptions"
}

object ClientOptions {
  private val Serialization = "org.apache.kafka.common.serialization"
  private[kafka] val MaxRequestBytes = (32 * 1024 * 1024).toString
  private val Prefix = "kafka."
  private val ForAnyClient =
    Seq("bootstrap.", "security.", "sasl.", "ssl.", "client.", "metadata.", "reconnect.", "socket.", "config.")

  /** To reach the brokers of a source, from the settings of its consumers. */
  def ofSource(settings: JMap[String, Object]): ClientOptions = {
    val texts = settings.asScala.toMap.map { case (key, value) => key -> String.valueOf(value) }
    SourceClientOptions(forAnyClient(texts))
  }

  /** From the options of a source or a sink, as the query's author wrote them. */
  def ofQuery(options: Map[String, String]): ClientOptions = SourceClientOptions(forAnyClient(options.collect {
    case (key, value) if key.toLowerCase(Locale.ROOT).startsWith(Prefix) => key.substring(Prefix.length) -> value
  }))

  private def forAnyClient(settings: Map[String, String]): Map[String, String] =
    settings.filter { case (key, _) => ForAnyClient.exists(key.startsWith) }

  /** With Spark's delegation tokens, where the connector has them. */
  private def withDelegationTokens(settings: Map[String, String]): JMap[String, Object] =
    KafkaConnector.withDelegationTokens(settings).getOrElse(new JHashMap[String, Object](settings.asJava))
}
