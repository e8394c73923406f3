package org.apache.spark.sql.tailrace.sink.kafka

import java.time.Duration

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import org.apache.kafka.clients.consumer.KafkaConsumer
import org.apache.kafka.common.TopicPartition

import org.apache.spark.sql.tailrace.internals.kafka.{ClientOptions, KafkaErrors}

import tailrace.TailraceException

/** Reads from output topics what this query has written there. */
final class OutputReadBack(options: ClientOptions, readCommitted: Boolean) {
  import OutputReadBack._

  private type Consumer = KafkaConsumer[Array[Byte], Array[Byte]]

  /** The offset behind the last record of each partition of a topic. */
  def endsOf(topic: String): Map[String, Long] =
    // Of all records: those of a transaction that is still open count too.
    withConsumer(committed = false)(consumer => ends(consumer, partitionsOf(consumer, topic))).map {
      case (partition, end) => partition.partition().toString -> end
    }

  /**
   * What the query has written since; a partition that is not among the beginnings is read from its first record.
   *
   * @param late whose records may still come
   */
  def since(beginnings: Map[String, Map[String, Long]], query: String, late: LateRecords): ReadBack =
    if (beginnings.isEmpty) ReadBack(Nil, Map.empty)
    else withConsumer(readCommitted) { consumer =>
      val partitions = beginnings.keys.toSeq.flatMap(partitionsOf(consumer, _))
      val first = consumer.beginningOffsets(partitions.asJava)
      // What is there now; a transaction of somebody else that is still open is waited for.
      val until = withConsumer(committed = false)(ends(_, partitions)).map { case (at, end) =>
        (at.topic(), at.partition()) -> end
      }
      late.begin()
      consumer.assign(partitions.asJava)
      partitions.foreach { partition =>
        val from = beginnings(partition.topic()).getOrElse(partition.partition().toString, 0L)
        consumer.seek(partition, math.max(from, first.get(partition)))
      }
      read(consumer, partitions, until, query, late)
    }

  private def read(
      consumer: Consumer,
      partitions: Seq[TopicPartition],
      until: Map[(String, Int), Long],
      query: String,
      late: LateRecords): ReadBack = {
    val found = mutable.ArrayBuffer.empty[WrittenRow]
    def behind = partitions.filter(at => consumer.position(at) < until((at.topic(), at.partition())))
    var positions = Seq.empty[Long]
    var progressAt = System.nanoTime()
    while (behind.nonEmpty || late.areAwaited) {
      consumer.poll(PollFor).forEach { record =>
        RowHeaders.read(record.headers()).filter(_._3.query == query).foreach { case (place, id, mark) =>
          val key = WrittenRows.keyOf(record.topic(), record.key())
          val content = WrittenRows.contentOf(key, record.value())
          val row = WrittenRow(place, id, mark, key, content, RowHeaders.readContent(record.headers()))
          found += row
          late.note(row)
        }
      }
      val now = partitions.map(consumer.position)
      if (now != positions) {
        positions = now
        progressAt = System.nanoTime()
      } else if (behind.nonEmpty && System.nanoTime() - progressAt > PatienceNanos) {
        val stuck = behind.map(at => s"${at.topic()}/${at.partition()} at ${consumer.position(at)}").mkString(", ")
        throw new TailraceException(
          "TAILRACE_OUTPUT_NOT_READABLE",
          s"what the last run has written could not be read back to its end: $stuck.",
          "see that the brokers are up, that this user may read the topic, and that no other producer leaves a transaction open.")
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
    try use(consumer)
    catch {
      // Kafka's own is not known to Spark as the end of a query that was stopped.
      case stopped: RuntimeException if KafkaErrors.isInterrupt(stopped) =>
        throw new InterruptedException("stopped while the output was read back")
    } finally consumer.close(Duration.ZERO)
  }
}

/** What a query has written, and how far its topics have been read for it. */
final case class ReadBack(rows: Seq[WrittenRow], ends: Map[String, Map[String, Long]])

object OutputReadBack {
  private val PollFor = Duration.ofMillis(200)
  // Longer than a transaction may stay open by default.
  private val PatienceNanos = 90L * 1000 * 1000 * 1000
}

/**
 * Records of a writer that was killed. The brokers have taken them in, or the operating system sends them on, but they are not
 * in the topic yet; without transactions nothing keeps them out. They are taken to have come when there was none for a while.
 */
final class LateRecords private (isOne: WrittenRow => Boolean, private var maySome: Boolean) {
  private var lastNanos = 0L

  /** What there is now is about to be read. */
  def begin(): Unit = lastNanos = System.nanoTime()

  def note(row: WrittenRow): Unit = if (isOne(row)) {
    maySome = true
    lastNanos = System.nanoTime()
  }

  def areAwaited: Boolean = maySome && System.nanoTime() - lastNanos < LateRecords.QuietNanos
}

object LateRecords {
  private val QuietNanos = 2L * 1000 * 1000 * 1000

  /** Writers are fenced. */
  def none: LateRecords = new LateRecords(_ => false, maySome = false)

  /** The last run was ended in the middle of an epoch, if there is anything of that. */
  def ofOlderRuns: LateRecords = new LateRecords(_ => true, maySome = false)

  /** The task has begun before, and perhaps its executor was lost. The others go on writing. */
  def ofTask(task: Int): LateRecords = new LateRecords(_.mark.task == task, maySome = true)
}
