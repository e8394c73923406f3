package org.apache.spark.sql.tailrace.sink.kafka

import java.util.Locale

import scala.jdk.CollectionConverters._
import scala.util.Try

import org.apache.spark.network.util.JavaUtils
import org.apache.spark.sql.tailrace.internals.kafka.ClientOptions
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import tailrace.TailraceException

/**
 * The writer's options.
 *
 * @param transactionMs how long a transaction may stay open; none without transactions
 */
final case class SinkOptions(topic: Option[String], kafka: Map[String, String], transactionMs: Option[Long])
    extends ClientOptions {
  import SinkOptions._

  def isTransactional: Boolean = transactionMs.isDefined

  /** How long a producer tries to deliver a record before it gives up. */
  def deliveryTimeoutMs: Long =
    kafka.get(DeliveryTimeoutKey).flatMap(_.trim.toLongOption).getOrElse(DefaultDeliveryTimeoutMs)

  // Passwords are among them.
  override def toString: String = s"SinkOptions(${topic.getOrElse("topic column")})"
}

object SinkOptions {
  val TopicKey = "topic"
  val IntervalKey = "transactionInterval"
  private val Prefix = "kafka."
  private val DeliveryTimeoutKey = "delivery.timeout.ms"
  private val DefaultDeliveryTimeoutMs = 120000L

  def of(options: CaseInsensitiveStringMap): SinkOptions = {
    val kafka = options.asCaseSensitiveMap().asScala.collect {
      case (key, value) if key.toLowerCase(Locale.ROOT).startsWith(Prefix) => key.substring(Prefix.length) -> value
    }.toMap
    if (!kafka.contains("bootstrap.servers")) {
      throw bad("the option kafka.bootstrap.servers is missing", ".option(\"kafka.bootstrap.servers\", \"host:9092\")")
    }
    Seq("key.serializer", "value.serializer", "transactional.id").filter(kafka.contains).foreach { key =>
      throw bad(s"the option kafka.$key cannot be set: the sink sets it itself", "remove it.")
    }
    if (kafka.get("enable.idempotence").exists(_.trim.equalsIgnoreCase("false"))) {
      throw bad("kafka.enable.idempotence=false lets the producer write duplicates", "remove it.")
    }
    if (kafka.get("acks").exists(acks => !Seq("all", "-1").contains(acks.trim))) {
      throw bad(
        s"kafka.acks=${kafka("acks")} lets the brokers lose a row that they have acknowledged",
        "remove it: the sink uses acks=all.")
    }
    SinkOptions(Option(options.get(TopicKey)).map(_.trim).filter(_.nonEmpty), kafka, transactionMs(options))
  }

  private def transactionMs(options: CaseInsensitiveStringMap): Option[Long] =
    Option(options.get(IntervalKey)).map { text =>
      Try(JavaUtils.timeStringAsMs(text.trim.replaceAll("\\s+", "").toLowerCase(Locale.ROOT))).toOption.filter(
        _ > 0).getOrElse(
        throw bad(s"$IntervalKey is '$text', which is not a duration", s".option(\"$IntervalKey\", \"20ms\")"))
    }

  private def bad(problem: String, fix: String) = new TailraceException("TAILRACE_BAD_SINK_OPTION", s"$problem.", fix)
}
