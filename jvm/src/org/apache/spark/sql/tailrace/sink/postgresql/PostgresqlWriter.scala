package org.apache.spark.sql.tailrace.sink.postgresql

import java.time.ZoneId
import java.util.{Iterator => JIterator}

import org.apache.kafka.clients.producer.Callback

import org.apache.spark.TaskContext
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BoundReference, UnsafeProjection, UnsafeRow, XXH64}
import org.apache.spark.sql.connector.write.{DataWriter, WriterCommitMessage}
import org.apache.spark.sql.connector.write.streaming.StreamingDataWriterFactory
import org.apache.spark.sql.tailrace.errors.{BadRecordHandler, ErrorPolicy}
import org.apache.spark.sql.tailrace.metrics.{FailsInBackground, ReportsAcknowledgements}
import org.apache.spark.sql.tailrace.origin.{CurrentRow, Ordinals, RowId, SourcePartition}
import org.apache.spark.sql.tailrace.sink.SinkCounts
import org.apache.spark.sql.tailrace.sink.dedup._
import org.apache.spark.sql.types.StructType

/** Where the rows of an epoch go. */
private[postgresql] final case class EpochTarget(
    options: PostgresqlOptions,
    table: TargetTable,
    state: StateTables,
    schema: StructType,
    fingerprint: String,
    timeZone: String) {
  /** The table's columns, in the order of the query's. */
  val columns: Seq[TargetColumn] = schema.fieldNames.toSeq.map(name => table.column(name).get)
  val keys: Seq[String] = options.keyColumns.map(name => table.column(name).get.name)
  val casts: Seq[Option[String]] =
    schema.fields.toSeq.zip(columns).map { case (field, column) => ColumnValues.castTo(field.dataType, column) }

  @transient lazy val values: IndexedSeq[ColumnValues] = {
    val zone = ZoneId.of(timeZone)
    schema.fields.toIndexedSeq.zip(columns).zipWithIndex.map { case ((field, column), at) =>
      ColumnValues(at, field.dataType, column, zone)
    }
  }
}

/** What the tasks of an epoch need in order to write. */
private[postgresql] final case class EpochWriter(
    query: String,
    run: Long,
    target: EpochTarget,
    onError: ErrorPolicy,
    strategy: DeduplicationStrategy,
    rows: Option[Broadcast[WrittenRows]],
    isSameQuery: Boolean)
    extends StreamingDataWriterFactory {
  override def createWriter(partition: Int, task: Long, epoch: Long): DataWriter[InternalRow] =
    new PostgresqlWriter(this, partition, epoch)
}

/**
 * What a task reports to the driver when it has written its part of an epoch.
 *
 * @param isRetry true if an earlier attempt of the task has written as well, and may have written more
 */
private[postgresql] final case class TaskCommit(counts: EpochCounts, isRetry: Boolean) extends WriterCommitMessage

/** @param rejected rows that PostgreSQL did not accept, and the query skipped */
private[postgresql] final case class EpochCounts(sink: SinkCounts, transactions: Long, rejected: Long) {
  def +(other: EpochCounts): EpochCounts =
    EpochCounts(sink + other.sink, transactions + other.transactions, rejected + other.rejected)

  def byName: Map[String, String] =
    sink.byName ++ Map("transactions" -> transactions.toString, "rejected" -> rejected.toString)
}

private[postgresql] object EpochCounts {
  val none: EpochCounts = EpochCounts(SinkCounts.none, 0, 0)
}

/** Writes the rows of a task to PostgreSQL, except those that the deduplicator drops. */
private[postgresql] final class PostgresqlWriter(epoch: EpochWriter, task: Int, epochId: Long)
    extends DataWriter[InternalRow]
    with ReportsAcknowledgements
    with FailsInBackground {
  private val target = epoch.target
  private val current = CurrentRow.ofThisTask()
  private val ordinals = new Ordinals(current)
  private val taskAttempt = TaskContext.get().attemptNumber()
  private val writer = WriterKey(epoch.query, epoch.run, epochId, task, taskAttempt)
  private val badRecords = new BadRecordHandler(epoch.onError)
  private val content = new RowContent(target)
  private val (deduplicator, started) = claim()
  private val sender = new TransactionSender(target, writer, badRecords, started)
  private var madeByTime = 0L
  private var isClosed = false

  /** Called for each row that is sent from now on, unless null. */
  var observer: Callback = _

  /** Shuts out older attempts of the task. Only then is it certain what they have written. */
  private def claim(): (Deduplicator[OutgoingRow], Long) = {
    val ofOlderRuns = epoch.rows.fold(WrittenRows.none)(_.value)
    val (sequence, written) = Retries.inTransaction(target.options) { connection =>
      val sequence = target.state.claimWriter(connection, writer).getOrElse(throw StateTables.taken())
      val written =
        if (taskAttempt == 0) ofOlderRuns
        else new WrittenRows(target.state.readJournal(connection, epoch.query, target.table.oid)._1)
      (sequence, written)
    }
    (Deduplicator.byOrigin[OutgoingRow](epoch.strategy, written, task, epoch.isSameQuery), sequence)
  }

  override def backgroundFailure: Option[Throwable] = sender.failure

  override def writeAll(rows: JIterator[InternalRow]): Unit = guarded(super.writeAll(rows))

  override def write(row: InternalRow): Unit = {
    val isOfRecord = current.partitionIndex >= 0 && current.offset >= 0
    val outgoing =
      if (isOfRecord) {
        val id = RowId(current.offset, current.path, ordinals.next())
        new OutgoingRow(current.partitions(current.partitionIndex), id, row)
      } else {
        madeByTime += 1
        new OutgoingRow(SourcePartition.madeByTime(task), RowId.madeByTime(epochId), row)
      }
    deduplicator.offer(outgoing).foreach(settle)
  }

  private def settle(decided: Decided[OutgoingRow]): Unit = if (decided.decision != Decision.Drop) {
    val row = decided.candidate
    sender.send(new PendingRow(
      row.source,
      row.row.copy(ordinal = decided.ordinal),
      row.keyHash,
      row.contentHash,
      row.key,
      row.values,
      row.bytes,
      observer))
  }

  override def commit(): WriterCommitMessage = {
    deduplicator.finish().foreach(settle)
    sender.finish()
    isClosed = true
    val counts = SinkCounts(deduplicator.dropped, deduplicator.corrected, madeByTime)
    TaskCommit(EpochCounts(counts, sender.transactions, sender.rejected), isRetry = taskAttempt > 0)
  }

  override def abort(): Unit = close()

  override def close(): Unit = if (!isClosed) {
    isClosed = true
    sender.abandon()
  }

  /** Spark reuses the row, so everything is read at once. */
  private final class OutgoingRow(val source: SourcePartition, val row: RowId, written: InternalRow)
      extends Candidate {
    val values: Array[AnyRef] = content.values(written)
    val key: Any = content.key(values)
    override val keyHash: Long = content.keyHash(written)
    override val contentHash: Long = content.hash(written, keyHash)
    val bytes: Int = content.size
    override def expectsOthers: Boolean = current.expectsRows
    override def hasKey: Boolean = target.keys.nonEmpty
    override def contentId: ContentId = throw new IllegalStateException("matches are not written")
    override def isCompacted: Boolean = false
  }
}

/** Hashes of a row as Spark holds it. Equal values have equal bytes. */
private[postgresql] final class RowContent(target: EpochTarget) {
  private val keys = target.keys.map(key => target.columns.indexWhere(_.name == key)).toArray
  private val columns = target.values.toArray
  private val toUnsafe = UnsafeProjection.create(target.schema)
  private val toKey = UnsafeProjection.create(keys.toSeq.map { at =>
    BoundReference(at, target.schema(at).dataType, target.schema(at).nullable)
  })
  // Another table gets its rows, whatever the first one holds.
  private val seed = target.table.oid

  /** Of the last row that was hashed, in bytes. */
  var size: Int = 0

  /** What makes two rows of a batch the same one for PostgreSQL. */
  def key(values: Array[AnyRef]): Any = if (keys.length == 1) keyPart(values(keys(0)))
  else keys.toSeq.map(at => keyPart(values(at)))

  private def keyPart(value: AnyRef): Any = value match {
    case bytes: Array[Byte] => bytes.toSeq
    case other => other
  }

  def values(row: InternalRow): Array[AnyRef] = {
    val read = new Array[AnyRef](columns.length)
    var at = 0
    while (at < columns.length) {
      read(at) = columns(at).of(row)
      at += 1
    }
    read
  }

  def keyHash(row: InternalRow): Long = if (keys.isEmpty) seed else hash(toKey(row), seed)

  def hash(row: InternalRow, keyHash: Long): Long = {
    val bytes = row match {
      case unsafe: UnsafeRow => unsafe
      case other => toUnsafe(other)
    }
    size = bytes.getSizeInBytes
    hash(bytes, keyHash)
  }

  private def hash(row: UnsafeRow, seed: Long): Long =
    XXH64.hashUnsafeBytes(row.getBaseObject, row.getBaseOffset, row.getSizeInBytes, seed)
}
