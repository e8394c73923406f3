package org.apache.spark.sql.tailrace.errors

import java.nio.charset.StandardCharsets.UTF_8
import java.time.{Duration, Instant}
import java.util.{Arrays => JArrays, Collections}
import java.util.concurrent.{ExecutionException, TimeoutException, TimeUnit}

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import org.apache.kafka.clients.consumer.{ConsumerRecord, KafkaConsumer}
import org.apache.kafka.clients.producer.ProducerRecord
import org.apache.kafka.common.TopicPartition
import org.apache.kafka.common.header.Header
import org.apache.kafka.common.header.internals.RecordHeader

import org.apache.spark.sql.tailrace.internals.kafka.{ClientOptions, KafkaErrors, Producers}
import org.apache.spark.sql.tailrace.internals.kafka.Producers.Producer
import org.apache.spark.sql.tailrace.origin.SourcePosition

import tailrace.TailraceException

/**
 * Writes records that could not be processed to a topic of their own: unchanged, with key and headers, and with the
 * error in additional headers. They can be sent in again once the query is fixed.
 *
 * A record that is too large for its topic with these headers is written without its value and its own headers, and if
 * need be without its key. It can still be read at its source.
 */
object DeadLetters {
  private val FetchNanos = TimeUnit.SECONDS.toNanos(10)
  private val SendSeconds = 60L
  private val MaxMessageLength = 4000
  private val ShortMessageLength = 200
  private val ReservedPrefix = "tailrace-"
  private val Deleted = "deleted"
  private val TooLarge = "too-large"
  private type Letter = ProducerRecord[Array[Byte], Array[Byte]]

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
    val producer = Producers.share(options)
    try sendFirstThatFits(producer, lettersOf(policy, position, failure, original))
    finally Producers.release(producer)
  }

  /** The dead letter, followed by smaller versions of it. */
  private def lettersOf(
      policy: ErrorPolicy.DeadLetter,
      position: SourcePosition,
      failure: Throwable,
      original: Option[ConsumerRecord[Array[Byte], Array[Byte]]]): List[Letter] = {
    def added(maxMessageLength: Int, state: Option[String]): Array[Header] = {
      val texts = Seq(
        "tailrace-source" -> s"${position.topic}/${position.partition}/${position.offset}",
        "tailrace-query" -> policy.query,
        "tailrace-error-class" -> failure.getClass.getName,
        "tailrace-error" -> String.valueOf(failure.getMessage).take(maxMessageLength),
        "tailrace-failed-at" -> Instant.now().toString) ++ state.map("tailrace-record" -> _)
      texts.map { case (key, value) => new RecordHeader(key, value.getBytes(UTF_8)): Header }.toArray
    }
    def letter(key: Array[Byte], value: Array[Byte], headers: Array[Header]): Letter =
      new Letter(policy.topic, null, key, value, JArrays.asList(headers: _*))

    original match {
      case None => letter(null, null, added(MaxMessageLength, Some(Deleted))) :: Nil
      case Some(record) =>
        // The source may be another query's output: its tailrace- headers describe that query's rows, not this letter.
        val own = record.headers().toArray().filterNot(_.key().startsWith(ReservedPrefix))
        List(
          letter(record.key(), record.value(), own ++ added(MaxMessageLength, None)),
          // Not null: sent in again to a compacted topic, it would delete the key.
          letter(record.key(), Array.emptyByteArray, added(MaxMessageLength, Some(TooLarge))),
          letter(null, Array.emptyByteArray, added(ShortMessageLength, Some(TooLarge))))
    }
  }

  private def sendFirstThatFits(producer: Producer, letters: List[Letter]): Unit =
    try producer.send(letters.head, null).get(SendSeconds, TimeUnit.SECONDS)
    catch {
      case refused: ExecutionException if letters.tail.nonEmpty && KafkaErrors.isRecordTooLarge(refused.getCause) =>
        sendFirstThatFits(producer, letters.tail)
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
