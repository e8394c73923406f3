package org.apache.spark.sql.tailrace.errors

import java.nio.charset.StandardCharsets.UTF_8
import java.time.Duration
import java.util.{ArrayList => JArrayList, Collections}
import java.util.concurrent.{TimeoutException, TimeUnit}

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import org.apache.kafka.clients.consumer.{ConsumerRecord, KafkaConsumer}
import org.apache.kafka.clients.producer.ProducerRecord
import org.apache.kafka.common.TopicPartition
import org.apache.kafka.common.header.Header
import org.apache.kafka.common.header.internals.RecordHeader

import org.apache.spark.sql.tailrace.internals.kafka.{ClientOptions, Producers}
import org.apache.spark.sql.tailrace.origin.SourcePosition

import tailrace.TailraceException

/**
 * Writes records that could not be processed to a topic of their own: unchanged, with key and headers, and with the
 * error in additional headers. They can be sent in again once the query is fixed.
 */
object DeadLetters {
  private val FetchNanos = TimeUnit.SECONDS.toNanos(10)
  private val SendSeconds = 60L
  private val MaxMessageLength = 4000

  /** Returns when the brokers have acknowledged the dead letter. */
  def send(policy: ErrorPolicy.DeadLetter, position: SourcePosition, failure: Throwable): Unit =
    try write(policy, position, failure)
    catch {
      case interrupted: InterruptedException => throw interrupted
      case NonFatal(reason) =>
        val error = new TailraceException(
          "TAILRACE_DEAD_LETTER_NOT_SENT",
          s"${SourcePosition.describe(Seq(position))} could not be sent to ${policy.topic}: $reason",
          "check that the brokers are up, that the topic exists and that this user may write to it; no record is lost.")
        error.initCause(reason)
        throw error
    }

  private def write(policy: ErrorPolicy.DeadLetter, position: SourcePosition, failure: Throwable): Unit = {
    val options = policy.sources(position.in.source)
    val original = fetch(options, position)
    val headers = new JArrayList[Header]
    original.foreach(_.headers().toArray().foreach(headers.add))
    val added = Seq(
      "tailrace-source" -> s"${position.topic}/${position.partition}/${position.offset}",
      "tailrace-query" -> policy.query,
      "tailrace-error-class" -> failure.getClass.getName,
      "tailrace-error" -> String.valueOf(failure.getMessage).take(MaxMessageLength),
      "tailrace-failed-at" -> java.time.Instant.now().toString) ++
      Option.when(original.isEmpty)("tailrace-record" -> "deleted")
    added.foreach { case (key, value) => headers.add(new RecordHeader(key, value.getBytes(UTF_8))) }
    val producer = Producers.share(options)
    try {
      val (key, value) =
        original.fold[(Array[Byte], Array[Byte])]((null, null))(record => (record.key(), record.value()))
      val letter = new ProducerRecord[Array[Byte], Array[Byte]](policy.topic, null, key, value, headers)
      producer.send(letter, null).get(SendSeconds, TimeUnit.SECONDS)
    } finally Producers.release(producer)
  }

  /** The record at the position; none if Kafka has deleted it in the meantime. */
  private def fetch(
      options: ClientOptions,
      position: SourcePosition): Option[ConsumerRecord[Array[Byte], Array[Byte]]] = {
    val consumer = new KafkaConsumer[Array[Byte], Array[Byte]](options.consumer(readCommitted = false))
    try {
      val partition = new TopicPartition(position.topic, position.partition)
      consumer.assign(Collections.singletonList(partition))
      consumer.seek(partition, position.offset)
      val until = System.nanoTime() + FetchNanos
      val found =
        Iterator.continually(consumer.poll(Duration.ofMillis(200)).asScala).takeWhile(_ => System.nanoTime() < until)
          .flatten.find(_.offset() >= position.offset)
      val first = found.getOrElse(throw new TimeoutException("the record could not be read again in time"))
      Option.when(first.offset() == position.offset)(first)
    } finally consumer.close(Duration.ZERO)
  }
}
