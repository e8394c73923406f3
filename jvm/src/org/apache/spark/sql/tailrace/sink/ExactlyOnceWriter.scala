package org.apache.spark.sql.tailrace.sink

import java.util.{Arrays => JArrays}

import scala.collection.mutable

import org.apache.kafka.clients.producer.{Callback, ProducerRecord, RecordMetadata}
import org.apache.kafka.common.header.Header

import org.apache.spark.{SparkEnv, TaskContext}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.write.{DataWriter, WriterCommitMessage}
import org.apache.spark.sql.tailrace.latency.TellsOfAcknowledgements
import org.apache.spark.sql.tailrace.poison.PoisonHandler
import org.apache.spark.sql.tailrace.provenance.{CurrentRow, Ordinals, SourcePosition}
import org.apache.spark.sql.tailrace.sink.Producers.Producer

import tailrace.TailraceException

/** What a task tells the driver when it has written its part of an epoch. */
final case class TaskEnd(task: Int, executor: String, ends: Map[String, Map[String, Long]], counts: SinkCounts)
    extends WriterCommitMessage

/** Writes the rows of a task, except those that are there already. */
final class ExactlyOnceWriter(epoch: EpochWork, task: Int) extends DataWriter[InternalRow] with TellsOfAcknowledgements {
  import ExactlyOnceWriter._

  private val columns = new RecordColumns(epoch.schema, epoch.options.topic)
  private val current = CurrentRow.ofThisTask()
  private val ordinals = new Ordinals(current)
  private val places = new Array[SourcePlace](current.places.length)
  private val written = new WrittenLookup(epoch.writtenBefore(TaskContext.get().attemptNumber()))
  private val topics = new TopicsMet(epoch)
  private val acknowledged = new Acknowledgements
  private val poison = new PoisonHandler(epoch.onError)

  private val transactionalId = epoch.transactionalId(task)
  private val executor = SparkEnv.get.executorId
  private val producer: Producer =
    if (epoch.options.isTransactional) {
      Producers.transactional(epoch.options, transactionalId, epoch.run, epoch.lastExecutors.get(task).contains(executor))
    } else {
      Producers.share(epoch.options)
    }
  private val transactions = epoch.options.transactionMs.map(new Transactions(producer, _, transactionalId)).orNull

  private var sequence = 0L
  private var suppressed = 0L
  private var corrected = 0L
  private var unidentified = 0L
  // Keys of which the topic tells another story: whatever follows has to be written, so that the last row is right.
  private val diverged = mutable.HashSet.empty[Long]
  private var isOver = false

  /** Called for the next row that is sent, and only for that. */
  var observer: Callback = _

  override def write(row: InternalRow): Unit = {
    settleFailures()
    val record = columns.of(row)
    if (current.place < 0 || current.offset < 0) {
      unidentified += 1
      send(record, record.headers)
    } else {
      val place = placeOf(current.place)
      val id = RowId(current.offset, current.path, ordinals.next())
      if (isThere(place, id, record)) {
        suppressed += 1
      } else {
        val mark = WriterMark(epoch.query, epoch.attempt, task, sequence)
        sequence += 1
        send(record, record.headers ++ Array(RowHeaders.source(place, id.offset), RowHeaders.row(place, id, mark)))
      }
    }
  }

  private def isThere(place: SourcePlace, id: RowId, record: OutputRecord): Boolean = {
    val key = Written.keyOf(record.topic, record.key)
    written.take(place, id) match {
      case None =>
        if (record.key != null && epoch.isDeterministic && written.hasLater(place, id.offset, key)) {
          diverged += key
        }
        false
      case Some(content) =>
        // What a stateful operator says of a row depends on the rows before it, which may come in another order this time.
        val isSame = !epoch.isStateful || content == Written.contentOf(key, record.value)
        if (!isSame) {
          diverged += key
        }
        val isRight = !diverged.contains(key)
        if (!isRight) {
          corrected += 1
        }
        isRight
    }
  }

  private def send(record: OutputRecord, headers: Array[Header]): Unit = {
    topics.meets(record.topic)
    val sent = new ProducerRecord[Array[Byte], Array[Byte]](
      record.topic, record.partition, record.key, record.value, JArrays.asList(headers: _*))
    val callback = new Sent(acknowledged, describe, observer)
    if (transactions != null) transactions.send(_.send(sent, callback)) else producer.send(sent, callback)
  }

  /** What was not taken ends the query, unless it goes on without rows that are too large. */
  private def settleFailures(): Unit = {
    // Within a transaction nothing can be left out: it is void as a whole.
    val goesOn = epoch.onError.goesOn && transactions == null
    acknowledged.takeFailures(isOfOneRow = reason => goesOn && reason.getClass.getName == TooLarge).foreach {
      case (position, reason) => poison.handle(position, reason)
    }
  }

  private def describe: SourcePosition = current.places.positionOf(current.keep())

  private def placeOf(index: Int): SourcePlace = {
    if (places(index) == null) {
      val place = current.places(index).get
      places(index) = SourcePlace(current.places.sourceOf(index), place.topic, place.partition)
    }
    places(index)
  }

  override def commit(): WriterCommitMessage = {
    if (transactions != null) transactions.finish() else producer.flush()
    settleFailures()
    isOver = true
    if (transactions != null) Producers.keep(transactionalId, epoch.run, producer) else Producers.release(epoch.options)
    TaskEnd(task, executor, acknowledged.ends, SinkCounts(suppressed, corrected, unidentified))
  }

  override def abort(): Unit = close()

  override def close(): Unit = if (!isOver) {
    isOver = true
    if (transactions != null) {
      transactions.abandon()
      Producers.discard(producer)
    } else {
      Producers.release(epoch.options)
    }
  }
}

private object ExactlyOnceWriter {
  private val TooLarge = "org.apache.kafka.common.errors.RecordTooLargeException"
}

/** What the brokers have said; told by the producer's thread, asked by the task's. */
private final class Acknowledgements {
  @volatile private var hasFailed = false
  private val failures = mutable.Queue.empty[(SourcePosition, Exception)]
  private val behind = mutable.HashMap.empty[(String, Int), Long]

  def arrived(metadata: RecordMetadata): Unit = synchronized {
    val at = (metadata.topic(), metadata.partition())
    behind(at) = math.max(behind.getOrElse(at, 0L), metadata.offset() + 1)
  }

  def failed(position: SourcePosition, reason: Exception): Unit = synchronized {
    failures.enqueue((position, reason))
    hasFailed = true
  }

  /** Rows that were not taken through their own fault; throws if there are others. */
  def takeFailures(isOfOneRow: Exception => Boolean): Seq[(SourcePosition, Exception)] = if (!hasFailed) Nil else synchronized {
    failures.find { case (_, reason) => !isOfOneRow(reason) }.foreach { case (position, reason) => throw notWritten(position, reason) }
    hasFailed = false
    failures.dequeueAll(_ => true).toSeq
  }

  private def notWritten(position: SourcePosition, reason: Exception): Throwable = new TailraceException(
    "TAILRACE_RECORD_NOT_WRITTEN",
    s"Kafka did not take a row made of ${SourcePosition.describe(Seq(position))}: ${reason.getMessage}",
    "see that the brokers are up and that the topic takes records of that size; the next run writes it again.")

  def ends: Map[String, Map[String, Long]] = synchronized {
    behind.groupMap(_._1._1) { case ((_, partition), end) => partition.toString -> end }.view.mapValues(_.toMap).toMap
  }
}

private final class Sent(acknowledged: Acknowledgements, position: => SourcePosition, observer: Callback) extends Callback {
  private val at = position

  override def onCompletion(metadata: RecordMetadata, failure: Exception): Unit = {
    if (failure == null) acknowledged.arrived(metadata) else acknowledged.failed(at, failure)
    if (observer != null) {
      observer.onCompletion(metadata, failure)
    }
  }
}

/** Before a task's first record goes to a topic that only the rows name, it is noted where the topic ended. */
private final class TopicsMet(epoch: EpochWork) {
  private val met = mutable.HashSet.empty[String] ++ epoch.beginnings.keys

  def meets(topic: String): Unit = if (met.add(topic)) {
    epoch.log.begins(topic, new OutputTail(epoch.options, readCommitted = false).endsOf(topic))
  }
}
