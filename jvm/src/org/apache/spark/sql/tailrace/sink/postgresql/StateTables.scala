package org.apache.spark.sql.tailrace.sink.postgresql

import java.sql.Connection

import org.apache.spark.sql.tailrace.sink.store.{ClaimedRun, JournalContent, JournalReader, Store, WriterKey}

/**
 * Tailrace's own tables, next to the table that is written to:
 *
 *  - `tailrace_runs`: by query, the number of its newest run, and the first epoch of which the journal is kept.
 *  - `tailrace_writers`: by task and epoch, which run and attempt writes, and how many transactions it has committed.
 *    Each transaction updates its writer's row, and so waits for another one of the same writer, and finds out if a
 *    newer run or attempt has taken over.
 *  - `tailrace_journal`: by transaction, which rows it wrote; see `JournalCodec`. Removed when the epoch is
 *    committed.
 */
private[postgresql] final case class StateTables(schema: String) {
  import StateTables._

  val quotedSchema: String = Sql.quote(schema)
  val runs = s"$quotedSchema.$Runs"
  val writers = s"$quotedSchema.$Writers"
  val journal = s"$quotedSchema.$Journal"

  def create(connection: Connection): Unit = {
    // Two queries may start at the same time, and IF NOT EXISTS alone does not keep them apart.
    Sql.query(connection, s"SELECT pg_catalog.pg_advisory_xact_lock($CreateLock)")(_ => ())(_ => ())
    val isThere = Names.map(name =>
      Sql.query(connection, "SELECT pg_catalog.to_regclass(?) IS NOT NULL")(
        _.setString(1, s"$quotedSchema.$name"))(_.getBoolean(1)).head)
    if (!isThere.forall(identity)) {
      definitions.foreach(Sql.execute(connection, _))
    }
  }

  private def definitions: Seq[String] = Seq(
    s"""CREATE TABLE IF NOT EXISTS $runs (
      |  query text PRIMARY KEY, run bigint NOT NULL, kept_from bigint NOT NULL,
      |  started_at timestamptz NOT NULL DEFAULT now())""".stripMargin,
    s"""CREATE TABLE IF NOT EXISTS $writers (
      |  query text, epoch bigint, task int, run bigint NOT NULL, attempt int NOT NULL, sequence bigint NOT NULL,
      |  PRIMARY KEY (query, epoch, task)) WITH (fillfactor = 50)""".stripMargin,
    s"""CREATE TABLE IF NOT EXISTS $journal (
      |  query text, epoch bigint, task int, run bigint, attempt int, sequence bigint,
      |  fingerprint text NOT NULL, target bigint NOT NULL, rows bytea NOT NULL,
      |  PRIMARY KEY (query, epoch, task, run, attempt, sequence))""".stripMargin,
    // Hashes cannot be compressed.
    s"ALTER TABLE $journal ALTER COLUMN rows SET STORAGE EXTERNAL")

  /**
   * Makes this run the newest one. Waits for the transactions of older runs that are under way, which can write no
   * more after that, and reads what they have written.
   */
  def claim(connection: Connection, query: String, epoch: Long, target: Long): ClaimedRun = {
    val (run, keptFrom) = Sql.query(
      connection,
      s"""INSERT INTO $runs AS r (query, run, kept_from) VALUES (?, 1, 0)
        |ON CONFLICT (query) DO UPDATE SET run = r.run + 1, started_at = now()
        |RETURNING run, kept_from""".stripMargin)(_.setString(1, query))(row => (row.getLong(1), row.getLong(2))).head
    if (epoch < keptFrom) {
      throw Store.checkpointTooOld(epoch, keptFrom)
    }
    Sql.update(connection, s"DELETE FROM $writers WHERE query = ?")(_.setString(1, query))
    ClaimedRun(run, readJournal(connection, query, target))
  }

  /** Everything that is in the journal, in the order in which each task wrote it, and the queries that wrote it. */
  def readJournal(connection: Connection, query: String, target: Long): JournalContent = {
    val read = new JournalReader(query, target.toString)
    Sql.query(
      connection,
      s"""SELECT task, run, rows, fingerprint FROM $journal WHERE query = ? AND target = ?
        |ORDER BY run, epoch, attempt, sequence""".stripMargin) { statement =>
      statement.setFetchSize(FetchedTransactions)
      statement.setString(1, query)
      statement.setLong(2, target)
    } { row =>
      read.add(row.getInt(1), row.getLong(2), row.getBytes(3))
      row.getString(4)
    } match {
      case queries => JournalContent(read.rows, queries.toSet)
    }
  }

  /** Lets a writer begin; returns how many transactions its task has committed. None if a newer one has taken over. */
  def claimWriter(connection: Connection, writer: WriterKey): Option[Long] = Sql.query(
    connection,
    s"""INSERT INTO $writers AS w (query, epoch, task, run, attempt, sequence)
      |SELECT r.query, ?, ?, r.run, ?, 0 FROM $runs r WHERE r.query = ? AND r.run = ? FOR SHARE
      |ON CONFLICT (query, epoch, task) DO UPDATE SET attempt = EXCLUDED.attempt
      |WHERE w.run = EXCLUDED.run AND w.attempt <= EXCLUDED.attempt RETURNING sequence""".stripMargin) { statement =>
    statement.setLong(1, writer.epoch)
    statement.setInt(2, writer.task)
    statement.setInt(3, writer.attempt)
    statement.setString(4, writer.query)
    statement.setLong(5, writer.run)
  }(_.getLong(1)).headOption

  /** How many transactions the writer has committed; none if a newer one has taken over. */
  def sequenceOf(connection: Connection, writer: WriterKey): Option[Long] = Sql.query(
    connection,
    s"SELECT sequence FROM $writers WHERE query = ? AND epoch = ? AND task = ? AND run = ? AND attempt = ?") {
    statement =>
      statement.setString(1, writer.query)
      statement.setLong(2, writer.epoch)
      statement.setInt(3, writer.task)
      statement.setLong(4, writer.run)
      statement.setInt(5, writer.attempt)
  }(_.getLong(1)).headOption

  /** Forgets the rows of epochs that have been committed. */
  def purge(connection: Connection, query: String, run: Long, before: Long): Unit = {
    val isNewest = Sql.update(
      connection,
      s"UPDATE $runs SET kept_from = greatest(kept_from, ?) WHERE query = ? AND run = ?") { statement =>
      statement.setLong(1, before)
      statement.setString(2, query)
      statement.setLong(3, run)
    } > 0
    if (isNewest) {
      Seq(journal, writers).foreach(table =>
        Sql.update(connection, s"DELETE FROM $table WHERE query = ? AND epoch < ?") { statement =>
          statement.setString(1, query)
          statement.setLong(2, before)
        })
    }
  }
}

private[postgresql] object StateTables {
  private val Runs = "tailrace_runs"
  private val Writers = "tailrace_writers"
  private val Journal = "tailrace_journal"
  val Names: Seq[String] = Seq(Runs, Writers, Journal)

  // Any number, if only all versions of Tailrace use it.
  private val CreateLock = 7245011993L
  private val FetchedTransactions = 1000

  def of(options: PostgresqlOptions, table: TargetTable): StateTables =
    StateTables(options.stateSchema.getOrElse(table.schema))
}
