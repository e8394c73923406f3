package org.apache.spark.sql.tailrace.sink.kafka

import java.util.{Arrays => JArrays}

import scala.collection.mutable

import org.apache.kafka.clients.producer.{Callback, ProducerRecord}
import org.apache.kafka.common.header.Header

import org.apache.spark.{SparkEnv, TaskContext}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.write.{DataWriter, WriterCommitMessage}
import org.apache.spark.sql.tailrace.errors.BadRecordHandler
import org.apache.spark.sql.tailrace.metrics.ReportsAcknowledgements
import org.apache.spark.sql.tailrace.internals.kafka.{KafkaErrors, Producers}
import org.apache.spark.sql.tailrace.internals.kafka.Producers.Producer
import org.apache.spark.sql.tailrace.origin.{CurrentRow, RowId, SourcePartition}
import org.apache.spark.sql.tailrace.sink.{RowIds, SinkCounts}
import org.apache.spark.sql.tailrace.sink.dedup._

/**
 * What a task reports to the driver when it has written its part of an epoch.
 *
 * @param ends        by topic and partition, the offset after the task's last record
 * @param isRetry     true if an earlier attempt of the task has written as well, and may have written more
 * @param notReplayed rows that an older run wrote and that the task has not seen again
 */
final case class TaskCommit(
    task: Int,
    executor: String,
    ends: Map[String, Map[String, Long]],
    counts: SinkCounts,
    isRetry: Boolean,
    notReplayed: Seq[ContentId])
    extends WriterCommitMessage

/** Writes the rows of a task to Kafka, except those that the deduplicator drops. */
final class ExactlyOnceWriter(epoch: EpochWriteContext, task: Int, epochId: Long) extends DataWriter[InternalRow]
    with ReportsAcknowledgements {
  import ExactlyOnceWriter._

  private val options = epoch.output.options
  private val columns = new RecordColumns(epoch.output.schema, options.topic)
  private val current = CurrentRow.ofThisTask()
  private val ids = new RowIds(current, task, epochId)
  private val topicStarts = new TopicStarts(epoch)
  private val acknowledgements = new Acknowledgements(options.kafka)
  private val badRecords = new BadRecordHandler(epoch.output.onError)
  private val hasContentId = epoch.replay.strategy == DeduplicationStrategy.ByContent
  private val digest = new ContentDigest
  private val mac = new RecordMac(epoch.readBack.secret)

  private val transactionalId = epoch.identity.transactionalId(task)
  private val executor = SparkEnv.get.executorId
  private val producer: Producer =
    if (options.isTransactional) {
      Producers.transactional(
        options,
        transactionalId,
        epoch.identity.run,
        epoch.output.lastExecutors.get(task).contains(executor))
    } else {
      Producers.share(options)
    }
  private val taskAttempt = TaskContext.get().attemptNumber()
  private val deduplicator =
    try newDeduplicator()
    catch {
      // Spark closes no writer that could not be made.
      case failure: Throwable =>
        giveBackProducer()
        throw failure
    }
  private val transactions = options.transactionMs.map(new Transactions(producer, _, transactionalId)).orNull

  private val sequence = WriteSequences.acquire(epoch.identity.run, task, taskAttempt)
  private var isClosed = false

  private def newDeduplicator(): Deduplicator[OutgoingRow] = {
    if (options.isTransactional && !epoch.readBack.log.isOwnedBy(epoch.identity.run)) {
      // An older driver that is still alive would fence the newer one in turn.
      throw new IllegalStateException("a newer run of the query writes to the topic")
    }
    // Only now: the producers of older attempts are fenced, so a read-back sees everything that they wrote.
    epoch.deduplicator[OutgoingRow](task, epochId, taskAttempt)
  }

  /** Called for the next row that is sent, and only for that one. */
  var observer: Callback = _

  override def write(row: InternalRow): Unit = {
    handleFailures()
    val record = columns.of(row)
    deduplicator.offer(ids.ofNext(new OutgoingRow(_, _, record))).foreach(settle)
  }

  private def settle(decided: Decided[OutgoingRow]): Unit = if (decided.decision != Decision.Drop) {
    val row = decided.candidate
    val mark = WriterMark(epoch.identity.query, epoch.identity.attempt, task, sequence.getAndIncrement())
    val id = row.row.copy(ordinal = decided.ordinal)
    val identity = Array(RowHeaders.source(row.source, id.offset), RowHeaders.row(row.source, id, mark))
    val content = if (hasContentId) Array(RowHeaders.content(row.contentId)) else NoHeaders
    val headers = row.record.headers ++ identity ++ content
    send(row.record, headers :+ RowHeaders.mac(mac.of(row.record.withHeaders(headers))))
  }

  private def send(record: OutputRecord, headers: Array[Header]): Unit = {
    topicStarts.note(record.topic)
    val sent = new ProducerRecord[Array[Byte], Array[Byte]](
      record.topic,
      record.partition,
      record.key,
      record.value,
      JArrays.asList(headers: _*))
    val callback = acknowledgements.expect(current.position, observer)
    try {
      if (transactions != null) transactions.send(_.send(sent, callback)) else producer.send(sent, callback)
    } catch {
      case failure: Throwable =>
        acknowledgements.expectOneLess()
        throw failure
    }
  }

  /** A record that Kafka rejected fails the query, unless it is only too large and the query skips bad records. */
  private def handleFailures(): Unit = {
    // A transaction is all or nothing: no single row of it can be skipped.
    val skips = epoch.output.onError.skipsBadRecords && transactions == null
    acknowledgements.takeFailures(isOfOneRow = reason => skips && KafkaErrors.isRecordTooLarge(reason)).foreach {
      case (position, reason) => badRecords.handle(position, reason)
    }
  }

  override def commit(): WriterCommitMessage = {
    deduplicator.finish().foreach(settle)
    if (transactions != null) transactions.finish() else producer.flush()
    handleFailures()
    isClosed = true
    WriteSequences.release(epoch.identity.run, task)
    if (transactions != null) Producers.keep(transactionalId, epoch.identity.run, producer)
    else Producers.release(producer)
    val counts = SinkCounts(deduplicator.dropped, deduplicator.corrected, ids.madeByTime)
    TaskCommit(task, executor, acknowledgements.ends, counts, isRetry = taskAttempt > 0, deduplicator.notReplayed)
  }

  override def abort(): Unit = close()

  override def close(): Unit = if (!isClosed) {
    isClosed = true
    WriteSequences.release(epoch.identity.run, task)
    if (transactions != null) {
      transactions.abandon()
      giveBackProducer()
    } else if (acknowledgements.awaitAll(SettleMs)) {
      Producers.release(producer)
    } else {
      // The next attempt reads back what is in the topic, so none of these records may arrive after that. The producer
      // gives each of them up in the end: at once if no other task uses it, otherwise when its delivery times out.
      Producers.release(producer, mayBeKept = false)
      acknowledgements.awaitAll(options.deliveryTimeoutMs)
    }
  }

  private def giveBackProducer(): Unit =
    if (options.isTransactional) Producers.discard(producer) else Producers.release(producer)

  /** Hashes are computed on demand: without a replay they are not needed. */
  private final class OutgoingRow(
      val source: SourcePartition,
      val row: RowId,
      val record: OutputRecord)
      extends Candidate {
    override def expectsOthers: Boolean = current.expectsRows
    override def hasKey: Boolean = record.key != null
    override lazy val keyHash: Long = RecordHashes.ofKey(record.topic, record.key)
    override lazy val contentHash: Long = RecordHashes.ofContent(keyHash, record.value)
    override lazy val contentId: ContentId = digest.of(record)
    override def isCompacted: Boolean = record.key != null && epoch.replay.compactedTopics(record.topic)
  }
}

private object ExactlyOnceWriter {
  private val NoHeaders = Array.empty[Header]
  private val SettleMs = 10000L
}

/** Logs where a topic ended before this query's first record in it, for topics that only the rows name. */
private final class TopicStarts(epoch: EpochWriteContext) {
  private val known = mutable.HashSet.empty[String] ++ epoch.readBack.starts.keys

  def note(topic: String): Unit = if (known.add(topic)) {
    val options = epoch.output.options
    epoch.readBack.log.addTopic(
      topic,
      TopicStart(
        new OutputReadBack(options, readCommitted = false).endOffsets(topic),
        TopicIds.in(TopicIds.of(options, Seq(topic)), topic)))
  }
}
