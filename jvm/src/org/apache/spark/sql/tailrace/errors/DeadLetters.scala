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
 * Writes records that could not be processed to a topic of their own: as they were, with their key and headers, and with
 * what went wrong in further headers. Whoever mends the query can send them in again.
 */
object DeadLetters {
  private val FetchNanos = TimeUnit.SECONDS.toNanos(10)
  private val SendSeconds = 60L
  private val LongestMessage = 4000

  /** Returns when the broker has it: the record counts as dealt with then. */
  def send(policy: ErrorPolicy.DeadLetter, position: SourcePosition, failure: Throwable): Unit =
    try write(policy, position, failure)
    catch {
      case interrupted: InterruptedException => throw interrupted
      case NonFatal(reason) =>
        val error = new TailraceException(
          "TAILRACE_DEAD_LETTER_NOT_SENT",
          s"${SourcePosition.describe(Seq(position))} could not be sent to ${policy.topic}: $reason",
          "see that the brokers are up and that the topic is there and may be written; no record is lost.")
        error.initCause(reason)
        throw error
    }

  private def write(policy: ErrorPolicy.DeadLetter, position: SourcePosition, failure: Throwable): Unit = {
    val options = policy.sources.getOrElse(position.topic, policy.sources(""))
    val original = fetch(options, position)
    val headers = new JArrayList[Header]
    original.foreach(_.headers().toArray().foreach(headers.add))
    val told = Seq(
      "tailrace-source" -> s"${position.topic}/${position.partition}/${position.offset}",
      "tailrace-query" -> policy.query,
      "tailrace-error-class" -> failure.getClass.getName,
      "tailrace-error" -> String.valueOf(failure.getMessage).take(LongestMessage),
      "tailrace-failed-at" -> java.time.Instant.now().toString) ++
      Option.when(original.isEmpty)("tailrace-record" -> "is gone from its topic")
    told.foreach { case (key, value) => headers.add(new RecordHeader(key, value.getBytes(UTF_8))) }
    val producer = Producers.share(options)
    try {
      val (key, value) =
        original.fold[(Array[Byte], Array[Byte])]((null, null))(record => (record.key(), record.value()))
      val letter = new ProducerRecord[Array[Byte], Array[Byte]](policy.topic, null, key, value, headers)
      producer.send(letter, null).get(SendSeconds, TimeUnit.SECONDS)
    } finally Producers.release(options)
  }

  /** The record at the position; none if Kafka has deleted it meanwhile. */
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
      val first = found.getOrElse(throw new TimeoutException("the record could not be read again"))
      Option.when(first.offset() == position.offset)(first)
    } finally consumer.close(Duration.ZERO)
  }
}
