package org.apache.spark.sql.tailrace.sink.kafka

import java.util.concurrent.TimeUnit
import java.util.concurrent.atomic.AtomicLong

import scala.collection.mutable

import org.apache.kafka.clients.producer.{Callback, RecordMetadata}

import org.apache.spark.sql.tailrace.internals.kafka.{KafkaRefusals, Wanted}
import org.apache.spark.sql.tailrace.origin.SourcePosition

import tailrace.TailraceException

/** Collects the brokers' answers for a task. The producer's thread adds them, the task's thread asks for them. */
private[kafka] final class Acknowledgements(settings: Map[String, String]) {
  @volatile private var hasFailed = false
  private val inFlight = new AtomicLong
  private val failures = mutable.Queue.empty[(SourcePosition, Exception)]
  private val endOffsets = mutable.HashMap.empty[(String, Int), Long]

  /** Registers a record that is about to be sent, and returns the callback for it. */
  def expect(position: SourcePosition, observer: Callback): Callback = {
    inFlight.incrementAndGet()
    (metadata: RecordMetadata, failure: Exception) => {
      if (failure == null) acknowledge(metadata) else fail(position, failure)
      inFlight.decrementAndGet()
      if (observer != null) {
        observer.onCompletion(metadata, failure)
      }
    }
  }

  /** To be called if a record that was expected could not even be handed to the producer. */
  def expectOneLess(): Unit = inFlight.decrementAndGet()

  /**
   * Waits until the brokers have answered for every record; false after a timeout. Works in an interrupted thread too.
   */
  def awaitAll(withinMs: Long): Boolean = {
    var interrupted = Thread.interrupted()
    val deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(withinMs)
    while (inFlight.get() > 0 && System.nanoTime() < deadline) {
      try Thread.sleep(Acknowledgements.PollMs)
      catch { case _: InterruptedException => interrupted = true }
    }
    if (interrupted) {
      Thread.currentThread().interrupt()
    }
    inFlight.get() == 0
  }

  /**
   * Removes and returns the rows that were refused because of themselves; throws if a record failed for another reason.
   */
  def takeFailures(isOfOneRow: Exception => Boolean): Seq[(SourcePosition, Exception)] = if (!hasFailed) Nil
  else synchronized {
    failures.find { case (_, reason) => !isOfOneRow(reason) }.foreach { case (position, reason) =>
      throw notWritten(position, reason)
    }
    hasFailed = false
    failures.dequeueAll(_ => true).toSeq
  }

  /** By topic and partition, the offset after the last record that was acknowledged. */
  def ends: Map[String, Map[String, Long]] = synchronized {
    endOffsets.groupMap(_._1._1) { case ((_, partition), end) => partition.toString -> end }.view.mapValues(
      _.toMap).toMap
  }

  private def acknowledge(metadata: RecordMetadata): Unit = synchronized {
    val partition = (metadata.topic(), metadata.partition())
    endOffsets(partition) = math.max(endOffsets.getOrElse(partition, 0L), metadata.offset() + 1)
  }

  private def fail(position: SourcePosition, reason: Exception): Unit = synchronized {
    failures.enqueue((position, reason))
    hasFailed = true
  }

  private def notWritten(position: SourcePosition, reason: Exception): Throwable =
    KafkaRefusals.of(reason, settings, Wanted("topic", "", "Write")).fold[Throwable](rejected(position, reason))(
      _.error(reason))

  private def rejected(position: SourcePosition, reason: Exception): Throwable = new TailraceException(
    "TAILRACE_RECORD_NOT_WRITTEN",
    s"Kafka rejected a row made from ${SourcePosition.describe(Seq(position))}: ${reason.getMessage}",
    "check that the brokers are up and that the topic accepts records of this size; the next run writes the row again.")
}

private object Acknowledgements {
  private val PollMs = 5L
}
