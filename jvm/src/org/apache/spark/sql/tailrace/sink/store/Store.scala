package org.apache.spark.sql.tailrace.sink.store

import org.apache.kafka.clients.producer.Callback

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.tailrace.origin.{RowId, SourcePartition, SourcePosition}
import org.apache.spark.sql.tailrace.sink.dedup.WrittenRow

import tailrace.TailraceException

/** The writer of a task's part of an epoch. Only the newest attempt of the newest run can write. */
private[sink] final case class WriterKey(query: String, run: Long, epoch: Long, task: Int, attempt: Int)

/** @param queries the fingerprints of the queries that wrote the rows */
private[sink] final case class JournalContent(rows: Seq[WrittenRow], queries: Set[String])

/** A run that has shut out all older ones. */
private[sink] final case class ClaimedRun(number: Long, journal: JournalContent)

/** A row in the form in which a store takes it. Spark reuses its own rows, so everything has been read. */
private[sink] trait StoreRow {
  /** What makes two rows the same one for the store, hashed. */
  def keyHash: Long
  def contentHash: Long

  /** In memory, about. */
  def bytes: Int

  /** Why no store would take it. */
  def problem: Option[String] = None
}

/**
 * A row that is to be written.
 *
 * @param observer called when it has been written, unless null
 */
private[sink] final class PendingRow[R <: StoreRow](
    val source: SourcePartition,
    val row: RowId,
    val content: R,
    val observer: Callback)
    extends JournalRow {
  override def keyHash: Long = content.keyHash
  override def contentHash: Long = content.contentHash

  /** Null if time made it. */
  def position: SourcePosition = if (source.isMadeByTime) null else SourcePosition(source, row.offset)
}

/** Reads Spark's rows. Not for several threads. */
private[sink] trait RowReader[R <: StoreRow] {
  def read(row: InternalRow): R
}

private[sink] trait BatchWriter[C, R <: StoreRow] {
  /**
   * Writes the rows, notes them in the journal and counts the writer up, all in one atomic step. Does nothing if this
   * batch was written before, and throws [[Store.newerRun]] if a newer writer has taken over.
   *
   * @param sequence the number of the batch
   * @return the rows that the store did not take, and why; they are not in the journal
   */
  def write(connection: C, sequence: Long, rows: Seq[PendingRow[R]]): Seq[(PendingRow[R], Throwable)]
}

/**
 * Where the rows of a run go: a store that can write rows and a journal of them in one atomic step. Made on the driver
 * when a run starts, and sent to its tasks.
 *
 * @tparam C a connection
 * @tparam R a row
 */
private[sink] trait Store[C, R <: StoreRow] extends Serializable {
  def server: StoreServer[C]

  /** How long the server may be away. */
  def retryMs: Long

  /** How many rows a batch may have. */
  def batchRows: Int

  /** Tells the query from another one with the same checkpoint. */
  def fingerprint: String

  /** True if a row replaces the one with the same key. */
  def hasKey: Boolean

  def newRowReader(): RowReader[R]

  def newBatchWriter(writer: WriterKey): BatchWriter[C, R]

  /** Lets a writer begin; returns how many batches its task has written. None if a newer one has taken over. */
  def claimWriter(connection: C, writer: WriterKey): Option[Long]

  /** Everything that is in the journal, in the order in which each task wrote it. */
  def readJournal(connection: C, query: String): JournalContent

  /** Forgets the rows of epochs that have been committed. */
  def purge(connection: C, query: String, run: Long, before: Long): Unit

  /**
   * Called on the driver when all rows of an epoch have been written, before Spark commits it. Throws if the store no
   * longer has them.
   */
  def endEpoch(query: String, run: Long, epoch: Long, tasks: Seq[TaskCommit]): Unit = ()
}

private[sink] object Store {
  def newerRun(): TailraceException = new TailraceException(
    "TAILRACE_NEWER_RUN",
    "a newer run of the query, or a newer attempt of the task, writes to the output.",
    "end this run: the other one uses the same checkpoint, or a copy of it, and continues the output.")

  /** @param epoch with which the checkpoint continues */
  def checkpointTooOld(epoch: Long, keptFrom: Long): TailraceException = new TailraceException(
    "TAILRACE_CHECKPOINT_TOO_OLD",
    s"the checkpoint continues with epoch $epoch, but the rows of the epochs before $keptFrom were committed " +
      "long ago and can no longer be recognized.",
    "use the newest checkpoint of the query. To write all rows of an older one again, start with a new " +
      "checkpoint location.")
}

/**
 * How to reach a server, and what its errors mean. Equal ones share their connections.
 *
 * @tparam C a connection
 */
private[sink] trait StoreServer[C] extends Serializable {
  /** For texts, such as `PostgreSQL at db:5432/decisions`. */
  def name: String

  def open(): C

  def close(connection: C): Unit

  /** From another thread: ends what is under way. */
  def abort(connection: C): Unit

  /** Runs all of it or nothing. */
  def transaction[T](connection: C)(work: C => T): T

  /** True if the server or its client made the failure. */
  def isOwnFailure(failure: Throwable): Boolean

  /** True if the same batch may succeed later, or over another connection. */
  def isTransient(failure: Throwable): Boolean

  /** True if the connection is still good after a transient failure. */
  def keepsConnection(failure: Throwable): Boolean

  /** True if nothing was written, and a part of the batch may be written without the rest. */
  def isOfSomeRow(failure: Throwable): Boolean

  /** The server has been away for too long. */
  def unreachable(failure: Throwable, forMs: Long): TailraceException

  /** The server does not take the rows, now or later. */
  def refused(failure: Throwable): TailraceException

  /** The server does not take this row. */
  final def rejected(position: SourcePosition, failure: Throwable): TailraceException = StoreServer.withCause(
    new TailraceException(
      StoreServer.RowRejected,
      s"${name.takeWhile(_ != ' ')} rejected a row made from ${SourcePosition.describe(Seq(position))}: " +
        StoreServer.messageOf(failure),
      "fix the query or the table, or skip such records: .option(\"onError\", \"dead-letter\")" +
        ".option(\"deadLetterTopic\", \"…\")."),
    failure)
}

private[sink] object StoreServer {
  val RowRejected = "TAILRACE_ROW_REJECTED"

  def messageOf(failure: Throwable): String = Option(failure.getMessage).getOrElse(failure.toString)

  def withCause(error: TailraceException, cause: Throwable): TailraceException = {
    error.initCause(cause)
    error
  }
}
