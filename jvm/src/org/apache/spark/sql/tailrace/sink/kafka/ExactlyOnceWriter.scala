package org.apache.spark.sql.tailrace.sink.kafka

import java.util.{Arrays => JArrays}
import java.util.concurrent.atomic.AtomicLong

import scala.collection.mutable

import org.apache.kafka.clients.producer.{Callback, ProducerRecord, RecordMetadata}
import org.apache.kafka.common.header.Header

import org.apache.spark.{SparkEnv, TaskContext}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.write.{DataWriter, WriterCommitMessage}
import org.apache.spark.sql.tailrace.errors.BadRecordHandler
import org.apache.spark.sql.tailrace.metrics.TellsOfAcknowledgements
import org.apache.spark.sql.tailrace.origin.{CurrentRow, Ordinals, SourceId, SourcePosition}
import org.apache.spark.sql.tailrace.internals.kafka.{KafkaErrors, Producers}
import org.apache.spark.sql.tailrace.internals.kafka.Producers.Producer

import tailrace.TailraceException

/**
 * What a task tells the driver when it has written its part of an epoch.
 *
 * @param isRepeated  whether an earlier attempt has written, too, and may have come further
 * @param matchesLeft what an older run has written and has not come again
 */
final case class TaskEnd(
    task: Int,
    executor: String,
    ends: Map[String, Map[String, Long]],
    counts: SinkCounts,
    isRepeated: Boolean,
    matchesLeft: Seq[ContentId])
    extends WriterCommitMessage

/** Writes the rows of a task, except those that are there already. */
final class ExactlyOnceWriter(epoch: EpochWriteContext, task: Int) extends DataWriter[InternalRow]
    with TellsOfAcknowledgements {
  import ExactlyOnceWriter._

  private val columns = new RecordColumns(epoch.schema, epoch.options.topic)
  private val current = CurrentRow.ofThisTask()
  private val ordinals = new Ordinals(current)
  private val places = new Array[SourceId](current.places.length)
  private val topics = new TopicsMet(epoch)
  private val acknowledged = new Acknowledgements
  private val poison = new BadRecordHandler(epoch.onError)

  private val transactionalId = epoch.transactionalId(task)
  private val executor = SparkEnv.get.executorId
  private val producer: Producer =
    if (epoch.options.isTransactional) {
      Producers.transactional(
        epoch.options,
        transactionalId,
        epoch.run,
        epoch.lastExecutors.get(task).contains(executor))
    } else {
      Producers.share(epoch.options)
    }
  if (epoch.options.isTransactional && !epoch.log.isOf(epoch.run)) {
    // An older driver that lives on would fence the newer one in turn.
    Producers.discard(producer)
    throw new IllegalStateException("a newer run of the query writes to the topic")
  }
  // After the producers of older attempts are fenced, and can add nothing.
  private val taskAttempt = TaskContext.get().attemptNumber()
  if (epoch.byContent && taskAttempt > 0) {
    // Spark does not do that where there is a shuffle, as before any join. Another run reads back what is there.
    throw new IllegalStateException("the task of a join cannot be repeated within an epoch")
  }
  private val written =
    new WrittenLookup(if (epoch.byContent) WrittenRows.nothing else epoch.writtenBefore(task, taskAttempt))
  private val matches = new MatchLookup(epoch.matchesBefore(task))
  private val contents = new ContentIds
  private val transactions = epoch.options.transactionMs.map(new Transactions(producer, _, transactionalId)).orNull

  private var sequence = 0L
  private var suppressed = 0L
  private var corrected = 0L
  private var unidentified = 0L
  // Keys of which the topic tells another story: whatever follows has to be written, so that the last row is right.
  private val diverged = mutable.HashSet.empty[Long]
  private val waiting = mutable.Queue.empty[WaitingRow]
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
      if (epoch.byContent) {
        writeUnlessMatched(place, id, record)
      } else if (written.isEmpty) {
        write(place, id, record)
      } else if (epoch.isStateful) {
        writeUnlessSame(place, id, record)
      } else {
        writeUnlessThere(place, id, record)
      }
    }
  }

  private def write(place: SourceId, id: RowId, record: OutputRecord, content: Array[Header] = NoHeaders): Unit = {
    val mark = WriterMark(epoch.query, epoch.attempt, task, sequence)
    sequence += 1
    send(
      record,
      record.headers ++ Array(RowHeaders.source(place, id.offset), RowHeaders.row(place, id, mark)) ++ content)
  }

  /**
   * Which of the two rows of a match comes second is decided anew each time, so that where it came from does not tell what it is.
   * But all matches come again, with the same content, and those that are alike stand for each other.
   */
  private def writeUnlessMatched(place: SourceId, id: RowId, record: OutputRecord): Unit = {
    val content = contents.of(record)
    if (matches.take(content)) {
      suppressed += 1
    } else {
      write(place, id, record, Array(RowHeaders.content(content)))
    }
  }

  /**
   * What a stateful operator says of a row depends on the rows before it, which may come in another order this time: if it is
   * something else, it is written, and so is everything that follows for the key.
   */
  private def writeUnlessSame(place: SourceId, id: RowId, record: OutputRecord): Unit = {
    val key = WrittenRows.keyOf(record.topic, record.key)
    val there = written.of(place, id)
    val found = there.indexWhere(_.ordinal == id.ordinal)
    if (found < 0) {
      noteHole(place, id, record, key)
      write(place, id, record)
    } else {
      if (there.remove(found).content != WrittenRows.contentOf(key, record.value)) {
        diverged += key
      }
      dropOrCorrect(place, id, record, key)
    }
  }

  /**
   * The rows of one record are known again by their content. Those whose content is another one this time (a random number,
   * the time) wait until all rows of the record have come: as many of them as are still there otherwise are dropped.
   */
  private def writeUnlessThere(place: SourceId, id: RowId, record: OutputRecord): Unit = {
    if (waiting.nonEmpty && !waiting.head.isOfRecord(place, id)) {
      settleWaiting()
    }
    val key = WrittenRows.keyOf(record.topic, record.key)
    val there = written.of(place, id)
    val found = there.indexWhere(_.content == WrittenRows.contentOf(key, record.value))
    if (found >= 0) {
      there.remove(found)
      dropOrCorrect(place, id, record, key)
      if (there.isEmpty) {
        settleWaiting()
      }
    } else if (there.nonEmpty) {
      waiting.enqueue(new WaitingRow(place, id, record, key))
    } else {
      noteHole(place, id, record, key)
      write(place, id, record)
    }
  }

  private def settleWaiting(): Unit = while (waiting.nonEmpty) {
    val row = waiting.dequeue()
    val there = written.of(row.place, row.id)
    if (there.isEmpty) {
      write(row.place, row.id, row.record)
    } else {
      there.remove(0)
      dropOrCorrect(row.place, row.id, row.record, row.key)
    }
  }

  private def dropOrCorrect(place: SourceId, id: RowId, record: OutputRecord, key: Long): Unit =
    if (diverged.contains(key)) {
      corrected += 1
      write(place, id, record)
    } else {
      suppressed += 1
    }

  /** A row that Kafka has compacted away is written again; so must be those that have replaced it. */
  private def noteHole(place: SourceId, id: RowId, record: OutputRecord, key: Long): Unit =
    if (record.key != null && epoch.compacted(record.topic) && written.hasLater(place, id.offset, key)) {
      diverged += key
    }

  private def send(record: OutputRecord, headers: Array[Header]): Unit = {
    topics.meets(record.topic)
    acknowledged.sent()
    val sent = new ProducerRecord[Array[Byte], Array[Byte]](
      record.topic,
      record.partition,
      record.key,
      record.value,
      JArrays.asList(headers: _*))
    val callback = new Sent(acknowledged, describe, observer)
    if (transactions != null) transactions.send(_.send(sent, callback)) else producer.send(sent, callback)
  }

  /** What was not taken ends the query, unless it goes on without rows that are too large. */
  private def settleFailures(): Unit = {
    // Within a transaction nothing can be left out: it is void as a whole.
    val goesOn = epoch.onError.goesOn && transactions == null
    acknowledged.takeFailures(isOfOneRow = reason => goesOn && KafkaErrors.isRecordTooLarge(reason)).foreach {
      case (position, reason) => poison.handle(position, reason)
    }
  }

  private def describe: SourcePosition = current.places.positionOf(current.keep())

  private def placeOf(index: Int): SourceId = {
    if (places(index) == null) {
      val place = current.places(index).get
      places(index) = SourceId(current.places.sourceOf(index), place.topic, place.partition)
    }
    places(index)
  }

  override def commit(): WriterCommitMessage = {
    settleWaiting()
    if (transactions != null) transactions.finish() else producer.flush()
    settleFailures()
    isOver = true
    if (transactions != null) Producers.keep(transactionalId, epoch.run, producer) else Producers.release(epoch.options)
    val counts = SinkCounts(suppressed, corrected, unidentified)
    TaskEnd(task, executor, acknowledged.ends, counts, isRepeated = taskAttempt > 0, matches.left)
  }

  override def abort(): Unit = close()

  override def close(): Unit = if (!isOver) {
    isOver = true
    if (transactions != null) {
      transactions.abandon()
      Producers.discard(producer)
    } else {
      // Whoever takes over reads back what is there: nothing of this may come later.
      val isSettled = acknowledged.awaitAll()
      Producers.release(epoch.options, mayBeKept = isSettled)
    }
  }
}

private object ExactlyOnceWriter {
  private val NoHeaders = Array.empty[Header]
}

/** What the brokers have said; told by the producer's thread, asked by the task's. */
private final class Acknowledgements {
  @volatile private var hasFailed = false
  private val underWay = new AtomicLong
  private val failures = mutable.Queue.empty[(SourcePosition, Exception)]
  private val behind = mutable.HashMap.empty[(String, Int), Long]

  def sent(): Unit = underWay.incrementAndGet()

  /** Whether the brokers have answered for all that was sent; also in a thread that was interrupted. */
  def awaitAll(): Boolean = {
    var interrupted = Thread.interrupted()
    val until = System.nanoTime() + Acknowledgements.PatienceNanos
    while (underWay.get() > 0 && System.nanoTime() < until) {
      try Thread.sleep(Acknowledgements.LooksEveryMs)
      catch { case _: InterruptedException => interrupted = true }
    }
    if (interrupted) {
      Thread.currentThread().interrupt()
    }
    underWay.get() == 0
  }

  def answered(): Unit = underWay.decrementAndGet()

  def arrived(metadata: RecordMetadata): Unit = synchronized {
    val at = (metadata.topic(), metadata.partition())
    behind(at) = math.max(behind.getOrElse(at, 0L), metadata.offset() + 1)
  }

  def failed(position: SourcePosition, reason: Exception): Unit = synchronized {
    failures.enqueue((position, reason))
    hasFailed = true
  }

  /** Rows that were not taken through their own fault; throws if there are others. */
  def takeFailures(isOfOneRow: Exception => Boolean): Seq[(SourcePosition, Exception)] = if (!hasFailed) Nil
  else synchronized {
    failures.find { case (_, reason) => !isOfOneRow(reason) }.foreach { case (position, reason) =>
      throw notWritten(position, reason)
    }
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

private object Acknowledgements {
  private val PatienceNanos = 10L * 1000 * 1000 * 1000
  private val LooksEveryMs = 5L
}

/** A row that is not known again by its content, of a record of which something is there. */
private final class WaitingRow(val place: SourceId, val id: RowId, val record: OutputRecord, val key: Long) {
  def isOfRecord(ofPlace: SourceId, of: RowId): Boolean =
    place == ofPlace && id.offset == of.offset && id.path == of.path
}

private final class Sent(acknowledged: Acknowledgements, position: => SourcePosition, observer: Callback)
    extends Callback {
  private val at = position

  override def onCompletion(metadata: RecordMetadata, failure: Exception): Unit = {
    if (failure == null) acknowledged.arrived(metadata) else acknowledged.failed(at, failure)
    acknowledged.answered()
    if (observer != null) {
      observer.onCompletion(metadata, failure)
    }
  }
}

/** Before a task's first record goes to a topic that only the rows name, it is noted where the topic ended. */
private final class TopicsMet(epoch: EpochWriteContext) {
  private val met = mutable.HashSet.empty[String] ++ epoch.beginnings.keys

  def meets(topic: String): Unit = if (met.add(topic)) {
    epoch.log.begins(topic, new OutputReadBack(epoch.options, readCommitted = false).endsOf(topic))
  }
}
