package org.apache.spark.sql.tailrace.sink.kafka

import java.time.Duration

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import org.apache.kafka.clients.consumer.KafkaConsumer
import org.apache.kafka.common.TopicPartition

import org.apache.spark.sql.tailrace.internals.kafka.{ClientOptions, KafkaErrors, KafkaRefusals, Wanted}
import org.apache.spark.sql.tailrace.sink.dedup.WrittenRow
import org.apache.spark.sql.tailrace.sink.kafka.Offsets.{NoOutput, OutputOffsets}

import tailrace.TailraceException

/** Reads what a query has written to its output topics. */
final class OutputReadBack(options: ClientOptions, readCommitted: Boolean) {
  import OutputReadBack._

  private type Consumer = KafkaConsumer[Array[Byte], Array[Byte]]

  /** The offset after the last record of each partition of a topic. */
  def endOffsets(topic: String): Map[String, Long] =
    // Includes the records of transactions that are still open.
    withConsumer(committed = false)(consumer => ends(consumer, partitionsOf(consumer, topic))).map {
      case (partition, end) => partition.partition().toString -> end
    }

  /**
   * Reads what the query has written since the start offsets. A partition without one is read from its first record.
   *
   * @param own  recognizes the query's records
   * @param late the records to wait for that may not be in the topic yet
   */
  def readSince(starts: OutputOffsets, own: OwnRecords, late: LateRecords): ReadBack =
    if (starts.isEmpty) ReadBack(Nil, NoOutput)
    else withConsumer(readCommitted) { consumer =>
      val partitions = starts.keys.toSeq.flatMap(partitionsOf(consumer, _))
      val first = consumer.beginningOffsets(partitions.asJava)
      // Up to the current end: this waits for open transactions of other producers.
      val until = withConsumer(committed = false)(ends(_, partitions)).map { case (at, end) =>
        (at.topic(), at.partition()) -> end
      }
      late.start()
      consumer.assign(partitions.asJava)
      partitions.foreach { partition =>
        val from = starts(partition.topic()).getOrElse(partition.partition().toString, 0L)
        consumer.seek(partition, math.max(from, first.get(partition)))
      }
      read(consumer, partitions, until, own, late)
    }

  private def read(
      consumer: Consumer,
      partitions: Seq[TopicPartition],
      until: Map[(String, Int), Long],
      own: OwnRecords,
      late: LateRecords): ReadBack = {
    val found = mutable.ArrayBuffer.empty[WrittenRow]
    def behind = partitions.filter(at => consumer.position(at) < until((at.topic(), at.partition())))
    var missing = Seq.empty[(TopicPartition, Long)]
    var progressAt = System.nanoTime()
    while (behind.nonEmpty || late.isAwaited) {
      consumer.poll(PollFor).forEach { record =>
        own.read(record).foreach { row =>
          found += row
          late.observe(row)
        }
      }
      // Only of the partitions that are behind: others may write to the rest without end.
      val stillMissing = behind.map(at => at -> consumer.position(at))
      if (stillMissing != missing) {
        missing = stillMissing
        progressAt = System.nanoTime()
      } else if (missing.nonEmpty && System.nanoTime() - progressAt > TimeoutNanos) {
        val stuck =
          missing.map { case (at, position) => s"${at.topic()}/${at.partition()} at $position" }.mkString(", ")
        throw new TailraceException(
          "TAILRACE_OUTPUT_NOT_READABLE",
          s"the output of the last run could not be read back completely: $stuck.",
          "check that the brokers are up, that this user may read the topic, and that no other producer leaves a " +
            "transaction open.")
      }
    }
    val ends = partitions.map(at => (at.topic(), at.partition().toString -> consumer.position(at)))
    ReadBack(found.toSeq, ends.groupMap(_._1)(_._2).view.mapValues(_.toMap).toMap)
  }

  private def partitionsOf(consumer: Consumer, topic: String): Seq[TopicPartition] =
    Option(consumer.partitionsFor(topic)).toSeq.flatMap(_.asScala).map(info =>
      new TopicPartition(topic, info.partition()))

  private def ends(consumer: Consumer, partitions: Seq[TopicPartition]): Map[TopicPartition, Long] =
    consumer.endOffsets(partitions.asJava).asScala.map { case (at, end) => at -> end.longValue }.toMap

  private def withConsumer[T](committed: Boolean)(use: Consumer => T): T = {
    val consumer = new Consumer(options.consumer(committed))
    try KafkaRefusals.coded(options.kafka, ToReadBack)(use(consumer))
    catch {
      // Spark does not recognize Kafka's own exception as the end of a stopped query.
      case stopped: RuntimeException if KafkaErrors.isInterrupt(stopped) =>
        throw new InterruptedException("stopped while reading back the output")
    } finally consumer.close(Duration.ZERO)
  }
}

/** What a query has written, and the offsets up to which its topics were read. */
final case class ReadBack(rows: Seq[WrittenRow], ends: OutputOffsets)

object OutputReadBack {
  private val ToReadBack =
    Wanted("topic", "", "Read", "the sink needs to recognize what it has written before a failure")
  private val PollFor = Duration.ofMillis(200)
  // Longer than a transaction may stay open by default.
  private val TimeoutNanos = 90L * 1000 * 1000 * 1000
}
