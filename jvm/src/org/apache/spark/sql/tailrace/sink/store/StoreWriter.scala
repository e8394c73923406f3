package org.apache.spark.sql.tailrace.sink.store

import java.util.{Iterator => JIterator}

import org.apache.kafka.clients.producer.Callback

import org.apache.spark.TaskContext
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.write.{DataWriter, WriterCommitMessage}
import org.apache.spark.sql.connector.write.streaming.StreamingDataWriterFactory
import org.apache.spark.sql.tailrace.errors.{BadRecordHandler, ErrorPolicy}
import org.apache.spark.sql.tailrace.metrics.{FailsInBackground, ReportsAcknowledgements}
import org.apache.spark.sql.tailrace.origin.{CurrentRow, RowId, SourcePartition}
import org.apache.spark.sql.tailrace.sink.{RowIds, SinkCounts}
import org.apache.spark.sql.tailrace.sink.dedup._

/** What the tasks of an epoch need in order to write. */
private[sink] final case class EpochWriter[C, R <: StoreRow](
    query: String,
    run: Long,
    store: Store[C, R],
    onError: ErrorPolicy,
    strategy: DeduplicationStrategy,
    rows: Option[Broadcast[WrittenRows]],
    isSameQuery: Boolean)
    extends StreamingDataWriterFactory {
  override def createWriter(partition: Int, task: Long, epoch: Long): DataWriter[InternalRow] =
    new StoreWriter(this, partition, epoch)
}

/**
 * What a task reports to the driver when it has written its part of an epoch.
 *
 * @param sequence how many batches it has written, over all attempts
 */
private[sink] final case class TaskCommit(writer: WriterKey, sequence: Long, counts: EpochCounts)
    extends WriterCommitMessage {
  /** True if an earlier attempt of the task has written as well, and may have written more. */
  def isRetry: Boolean = writer.attempt > 0
}

/** @param rejected rows that the store did not accept, and the query skipped */
private[sink] final case class EpochCounts(sink: SinkCounts, transactions: Long, rejected: Long) {
  def +(other: EpochCounts): EpochCounts =
    EpochCounts(sink + other.sink, transactions + other.transactions, rejected + other.rejected)

  def byName: Map[String, String] =
    sink.byName ++ Map("transactions" -> transactions.toString, "rejected" -> rejected.toString)
}

private[sink] object EpochCounts {
  val none: EpochCounts = EpochCounts(SinkCounts.none, 0, 0)
}

/** Writes the rows of a task to a store, except those that the deduplicator drops. */
private[sink] final class StoreWriter[C, R <: StoreRow](epoch: EpochWriter[C, R], task: Int, epochId: Long)
    extends DataWriter[InternalRow]
    with ReportsAcknowledgements
    with FailsInBackground {
  private val store = epoch.store
  private val ids = new RowIds(CurrentRow.ofThisTask(), task, epochId)
  private val taskAttempt = TaskContext.get().attemptNumber()
  private val writer = WriterKey(epoch.query, epoch.run, epochId, task, taskAttempt)
  private val badRecords = new BadRecordHandler(epoch.onError)
  private val reader = store.newRowReader()
  private val (deduplicator, started) = claim()
  private val sender = new BatchSender(store, writer, badRecords, started)
  private var isClosed = false

  /** Called for each row that is sent from now on, unless null. */
  var observer: Callback = _

  /** Shuts out older attempts of the task. Only then is it certain what they have written. */
  private def claim(): (Deduplicator[OutgoingRow], Long) = {
    val ofOlderRuns = epoch.rows.fold(WrittenRows.none)(_.value)
    val (sequence, written) = Retries.inTransaction(store.server, store.retryMs) { connection: C =>
      val sequence = store.claimWriter(connection, writer).getOrElse(throw Store.newerRun())
      val written =
        if (taskAttempt == 0) ofOlderRuns else new WrittenRows(store.readJournal(connection, epoch.query).rows)
      (sequence, written)
    }
    (Deduplicator.byOrigin[OutgoingRow](epoch.strategy, written, task, epochId, epoch.isSameQuery), sequence)
  }

  override def backgroundFailure: Option[Throwable] = sender.failure

  override def writeAll(rows: JIterator[InternalRow]): Unit = guarded(super.writeAll(rows))

  override def write(row: InternalRow): Unit = {
    val content = reader.read(row)
    deduplicator.offer(ids.ofNext(new OutgoingRow(_, _, content))).foreach(settle)
  }

  private def settle(decided: Decided[OutgoingRow]): Unit = if (decided.decision != Decision.Drop) {
    val row = decided.candidate
    sender.send(new PendingRow(row.source, row.row.copy(ordinal = decided.ordinal), row.content, observer))
  }

  override def commit(): WriterCommitMessage = {
    deduplicator.finish().foreach(settle)
    sender.finish()
    isClosed = true
    val counts = SinkCounts(deduplicator.dropped, deduplicator.corrected, ids.madeByTime)
    TaskCommit(writer, sender.lastSequence, EpochCounts(counts, sender.transactions, sender.rejected))
  }

  override def abort(): Unit = close()

  override def close(): Unit = if (!isClosed) {
    isClosed = true
    sender.abandon()
  }

  private final class OutgoingRow(val source: SourcePartition, val row: RowId, val content: R) extends Candidate {
    override def keyHash: Long = content.keyHash
    override def contentHash: Long = content.contentHash
    override def expectsOthers: Boolean = ids.current.expectsRows
    override def hasKey: Boolean = store.hasKey
    override def contentId: ContentId = throw new IllegalStateException("matches are not written")
    override def isCompacted: Boolean = false
  }
}
