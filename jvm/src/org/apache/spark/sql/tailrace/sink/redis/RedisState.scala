package org.apache.spark.sql.tailrace.sink.redis

import java.io.{ByteArrayInputStream, ByteArrayOutputStream, DataInputStream, DataOutputStream}
import java.nio.charset.StandardCharsets.UTF_8

import org.apache.spark.sql.tailrace.internals.{RedisConnection, RedisScript}
import org.apache.spark.sql.tailrace.internals.RedisValues.{bytesOf, listOf, textOf}
import org.apache.spark.sql.tailrace.sink.store._

import tailrace.TailraceException

/**
 * Tailrace's own keys, in the database that is written to. Their names begin with `tailrace:` and the query's id:
 *
 *  - `run`: a hash with the number of the newest run; the last epoch of which all rows were written (`ended`); and the
 *    first one of which the journal is kept (`keptFrom`).
 *  - `writers`: a hash; by epoch and task, which run and attempt writes, and how many batches it has written.
 *  - `epochs`: a set with the epochs that have a journal.
 *  - `journal:` and an epoch: a list; by batch, which rows it wrote. Removed when the epoch is committed.
 */
private[redis] final class RedisState(query: String) {
  import RedisState._

  private def key(name: String): Array[Byte] = bytesOf(s"$Prefix{$query}:$name")
  val run: Array[Byte] = key("run")
  val writers: Array[Byte] = key("writers")
  val epochs: Array[Byte] = key("epochs")
  private val journals = key("journal:")

  def journal(epoch: Long): Array[Byte] = journals ++ bytesOf(epoch.toString)

  /**
   * Makes this run the newest one. Older runs can write no more after that.
   *
   * @param isKnown true if the server must know the query
   */
  def claim(connection: RedisConnection, epoch: Long, isKnown: Boolean): Long =
    call(connection, RedisScripts.ClaimRun, Seq(run, writers), epoch.toString, if (isKnown) "1" else "0") match {
      case Answer("ok", number, _) => number.toLong
      case Answer("old", keptFrom, _) => throw Store.checkpointTooOld(epoch, keptFrom.toLong)
      case _ => throw lostRows(epoch - 1)
    }

  def claimWriter(connection: RedisConnection, writer: WriterKey): Option[Long] = {
    val keys = Seq(run, writers, epochs, journal(writer.epoch))
    val answer = call(
      connection,
      RedisScripts.ClaimWriter,
      keys,
      writer.run.toString,
      fieldOf(writer),
      writer.attempt.toString,
      writer.epoch.toString)
    answer match {
      case Answer("ok", sequence, _) => Some(sequence.toLong)
      case Answer("newer", _, _) => None
      case Answer(_, number, _) => throw otherRun(writer.run, number)
    }
  }

  def readJournal(connection: RedisConnection): JournalContent = {
    val read = new JournalReader(query, "redis")
    val entries = listOf(connection.call("SMEMBERS", epochs)).map(textOf(_).toLong).sorted.flatMap(entriesOf(
      connection,
      _))
    // Within a task they are in order already: a newer run or attempt begins when no older one can write.
    val ordered = entries.sortBy(_.run)
    ordered.foreach(entry => read.add(entry.task, entry.run, entry.rows, entry.rejected))
    JournalContent(read.rows, ordered.map(_.fingerprint).toSet)
  }

  private def entriesOf(connection: RedisConnection, epoch: Long): Seq[JournalEntry] =
    Iterator.from(0, FetchedEntries).map { from =>
      val until = from + FetchedEntries - 1
      listOf(connection.call("LRANGE", journal(epoch), bytesOf(from.toString), bytesOf(until.toString)))
    }.takeWhile(_.nonEmpty).flatten.collect { case bytes: Array[Byte] if bytes.nonEmpty => JournalEntry.read(bytes) }
      .toSeq

  def endEpoch(connection: RedisConnection, number: Long, epoch: Long, tasks: Seq[TaskCommit]): Unit = {
    val states = tasks.flatMap(task => Seq(fieldOf(task.writer), stateOf(task.writer, task.sequence)))
    call(connection, RedisScripts.EndEpoch, Seq(run, writers), number.toString +: epoch.toString +: states: _*) match {
      case Answer("ok", _, _) =>
      case Answer("other", other, _) => throw otherRun(number, other)
      case _ => throw wentBack()
    }
  }

  def purge(connection: RedisConnection, number: Long, before: Long): Unit = call(
    connection,
    RedisScripts.Purge,
    Seq(run, writers, epochs),
    number.toString,
    before.toString,
    new String(journals, UTF_8))
}

private[redis] object RedisState {
  val Prefix = "tailrace:"
  private val FetchedEntries = 200

  final case class Answer(outcome: String, first: String, second: String)

  def answerOf(answer: AnyRef): Answer = {
    val parts = listOf(answer).map(textOf)
    Answer(parts.head, parts.lift(1).getOrElse(""), parts.lift(2).getOrElse(""))
  }

  private def call(connection: RedisConnection, script: RedisScript, keys: Seq[Array[Byte]], arguments: String*) =
    answerOf(connection.run(script, keys, arguments.map(bytesOf)))

  def fieldOf(writer: WriterKey): String = s"${writer.epoch}:${writer.task}"

  def stateOf(writer: WriterKey, sequence: Long): String = s"${writer.run}:${writer.attempt}:$sequence"

  /** @param found the number of the newest run, in Redis; empty if there is none */
  def otherRun(run: Long, found: String): TailraceException =
    if (found.toLongOption.exists(_ > run)) Store.newerRun() else wentBack()

  /** Within a run: a new run writes the rows again. */
  def wentBack(): TailraceException = new TailraceException(
    "TAILRACE_REDIS_WENT_BACK",
    "Redis no longer has rows that it had acknowledged: it was restarted or failed over, and has lost its last writes.",
    "start the query again: rows since the last commit are then written again. To make this rare, set appendonly yes " +
      "and appendfsync always in Redis, or min-replicas-to-write.")

  /** At the start of a run: no replay reaches them. */
  def lostRows(epoch: Long): TailraceException = new TailraceException(
    "TAILRACE_REDIS_LOST_ROWS",
    s"Redis has lost rows of epoch $epoch or before, which Spark has committed and does not compute again.",
    "restore Redis from a backup that has them; or start with a new checkpoint location, which writes everything " +
      "again; or continue without them, once, with .option(\"failOnDataLoss\", \"false\").")
}

/** A batch in the journal. */
private[redis] final case class JournalEntry(
    task: Int,
    run: Long,
    fingerprint: String,
    rejected: Set[Int],
    rows: Array[Byte])

private[redis] object JournalEntry {
  /** Without the rejected rows: the script adds them in front. */
  def encode(writer: WriterKey, fingerprint: String, rows: Seq[JournalRow]): Array[Byte] = {
    val bytes = new ByteArrayOutputStream
    val out = new DataOutputStream(bytes)
    out.writeInt(writer.task)
    out.writeLong(writer.run)
    out.writeUTF(fingerprint)
    out.write(JournalCodec.encode(rows))
    bytes.toByteArray
  }

  def read(bytes: Array[Byte]): JournalEntry = {
    val colon = bytes.indexOf(':'.toByte)
    val start = colon + 1 + new String(bytes, 0, colon, UTF_8).toInt
    val rejected = RejectedRows.parse(new String(bytes, colon + 1, start - colon - 1, UTF_8)).keySet
    val in = new DataInputStream(new ByteArrayInputStream(bytes, start, bytes.length - start))
    JournalEntry(in.readInt(), in.readLong(), in.readUTF(), rejected, in.readAllBytes())
  }
}

/** What a script says about rows that Redis rejected: a line for each, with its number and the reason. */
private[redis] object RejectedRows {
  def parse(text: String): Map[Int, String] = text.linesIterator.flatMap { line =>
    val (number, reason) = line.span(_ != ' ')
    number.toIntOption.map(_ -> reason.trim)
  }.toMap
}
