package org.apache.spark.sql.tailrace.sink.redis

import org.apache.spark.sql.tailrace.internals.{RedisConnection, RedisError}
import org.apache.spark.sql.tailrace.internals.RedisValues.bytesOf
import org.apache.spark.sql.tailrace.sink.store._
import org.apache.spark.sql.types.StructType

/** The keys of Redis that a run writes to. */
private[redis] final case class RedisStore(
    options: RedisOptions,
    query: String,
    schema: StructType,
    fingerprint: String,
    timeZone: String)
    extends Store[RedisConnection, RedisRow] {
  override def server: StoreServer[RedisConnection] = options.server
  override def retryMs: Long = options.retryMs
  override def batchRows: Int = options.batchRows
  override def hasKey: Boolean = options.structure != Structure.Stream

  @transient lazy val state: RedisState = new RedisState(query)

  override def newRowReader(): RowReader[RedisRow] = new RedisRowReader(options, schema, timeZone)

  override def newBatchWriter(writer: WriterKey): BatchWriter[RedisConnection, RedisRow] =
    new RedisBatchWriter(this, writer)

  override def claimWriter(connection: RedisConnection, writer: WriterKey): Option[Long] =
    state.claimWriter(connection, writer)

  override def readJournal(connection: RedisConnection, ofQuery: String): JournalContent =
    state.readJournal(connection)

  override def purge(connection: RedisConnection, ofQuery: String, run: Long, before: Long): Unit =
    state.purge(connection, run, before)

  override def endEpoch(ofQuery: String, run: Long, epoch: Long, tasks: Seq[TaskCommit]): Unit =
    Retries.inTransaction(server, retryMs)((connection: RedisConnection) =>
      state.endEpoch(connection, run, epoch, tasks))
}

/** A batch is a call of one script. */
private[redis] final class RedisBatchWriter(store: RedisStore, writer: WriterKey)
    extends BatchWriter[RedisConnection, RedisRow] {
  private val options = store.options
  private val script = RedisScripts.write(options.structure)
  private val keys = Seq(store.state.run, store.state.writers, store.state.journal(writer.epoch))
  private val field = bytesOf(RedisState.fieldOf(writer))
  private val ttl = bytesOf(options.ttlMs.getOrElse(0L).toString)
  private val maxLength = bytesOf(options.maxLength.getOrElse(0).toString)

  override def write(
      connection: RedisConnection,
      sequence: Long,
      rows: Seq[PendingRow[RedisRow]]): Seq[(PendingRow[RedisRow], Throwable)] = {
    val arguments = Seq(
      field,
      bytesOf(RedisState.stateOf(writer, sequence - 1)),
      bytesOf(RedisState.stateOf(writer, sequence)),
      JournalEntry.encode(writer, store.fingerprint, rows),
      ttl,
      maxLength,
      PackedRows.of(rows.map(_.content)))
    RedisState.answerOf(connection.run(script, keys, arguments)) match {
      case RedisState.Answer("ok", "", _) => Nil
      case RedisState.Answer("ok", text, _) => rejected(rows, text)
      case RedisState.Answer(_, run, found) => throw overtaken(run, found)
    }
  }

  private def rejected(rows: Seq[PendingRow[RedisRow]], text: String): Seq[(PendingRow[RedisRow], Throwable)] = {
    val reasons = RejectedRows.parse(text).toSeq.sortBy(_._1).map { case (number, reason) =>
      rows(number) -> new RedisError(reason)
    }
    // A missing right, or anything unknown, is not the fault of a row, and must not be dropped with it.
    reasons.collectFirst { case (_, error) if !RedisBatchWriter.isOfRow(error) => throw error }
    reasons
  }

  private def overtaken(run: String, found: String) = found.split(':') match {
    case Array(ofRun, attempt, _) if ofRun == run && run == writer.run.toString && attempt.toInt > writer.attempt =>
      Store.newerRun()
    case _ => RedisState.otherRun(writer.run, run)
  }
}

private[redis] object RedisBatchWriter {
  private val RowErrors =
    Seq("not a valid float", "not a number", "exceeds maximum allowed size", "too large or too small", "out of range")

  /** True if it is the row or what its key holds that Redis does not accept. */
  def isOfRow(error: RedisError): Boolean = error.code == "WRONGTYPE" || RowErrors.exists(error.getMessage.contains)
}
