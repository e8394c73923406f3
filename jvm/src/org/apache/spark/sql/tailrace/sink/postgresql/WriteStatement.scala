package org.apache.spark.sql.tailrace.sink.postgresql

import java.sql.{Array => SqlArray, Connection, PreparedStatement}

import org.apache.spark.sql.tailrace.sink.store.{JournalCodec, PendingRow, WriterKey}

/**
 * The one statement that writes a batch, and is a transaction by itself: it counts the writer up, notes the rows in the
 * journal, and appends or upserts them. It does nothing at all if the writer is no longer the newest.
 *
 * The rows are sent as one array for each column. So the statement is the same for one row and for a thousand:
 * PostgreSQL plans it once, and a batch takes one round trip, the commit included.
 */
private[postgresql] final class WriteStatement(target: PostgresqlStore, writer: WriterKey) {
  private val values = target.values

  val sql: String = {
    import target.state
    val columns = target.columns.map(column => Sql.quote(column.name))
    val sent = columns.indices.map(at => s"c$at")
    val selected = sent.zip(target.casts).map { case (name, cast) => s"t.$name${cast.fold("")("::" + _)}" }
    s"""WITH writer AS (
      |  UPDATE ${state.writers} SET sequence = ?
      |  WHERE query = ? AND epoch = ? AND task = ? AND run = ? AND attempt = ? AND sequence = ? RETURNING *),
      |journal AS (
      |  INSERT INTO ${state.journal} (query, epoch, task, run, attempt, sequence, fingerprint, target, rows)
      |  SELECT query, epoch, task, run, attempt, sequence, ?, ?, ? FROM writer RETURNING sequence)
      |INSERT INTO ${target.table.quoted} (${columns.mkString(", ")})
      |SELECT ${selected.mkString(", ")}
      |FROM journal, unnest(${columns.map(_ => "?").mkString(", ")}) AS t(${sent.mkString(", ")})
      |$onConflict""".stripMargin
  }

  private def onConflict: String = if (target.keys.isEmpty) ""
  else {
    val keys = target.keys.map(Sql.quote)
    val others = target.columns.map(_.name).filterNot(target.keys.toSet).map(Sql.quote)
    // With DO NOTHING, a row that is there would look like one that a newer writer has kept us from writing.
    val changed = if (others.isEmpty) keys.take(1) else others
    s"ON CONFLICT (${keys.mkString(", ")}) DO UPDATE SET " +
      changed.map(name => s"$name = EXCLUDED.$name").mkString(", ")
  }

  /**
   * @param sequence the number of this transaction
   * @param all      the rows that the journal names
   * @param written  those of them that the table gets
   * @return how many rows the table got; 0 if the writer is not the newest, or has written this transaction before
   */
  def execute(
      connection: Connection,
      sequence: Long,
      all: Seq[PendingRow[TableRow]],
      written: Seq[PendingRow[TableRow]]): Int = {
    // The driver keeps it: it is prepared once for each connection.
    val statement = connection.prepareStatement(sql)
    var arrays = Seq.empty[SqlArray]
    try {
      bindWriter(statement, sequence)
      statement.setString(8, target.fingerprint)
      statement.setLong(9, target.table.oid)
      statement.setBytes(10, JournalCodec.encode(all))
      arrays = values.indices.map { column =>
        val array = values(column).array(written.length)
        written.indices.foreach(at => array(at) = written(at).content.values(column))
        connection.createArrayOf(values(column).arrayType, array)
      }
      arrays.zipWithIndex.foreach { case (array, column) => statement.setArray(11 + column, array) }
      statement.executeUpdate()
    } finally {
      arrays.foreach(_.free())
      statement.close()
    }
  }

  private def bindWriter(statement: PreparedStatement, sequence: Long): Unit = {
    statement.setLong(1, sequence)
    statement.setString(2, writer.query)
    statement.setLong(3, writer.epoch)
    statement.setInt(4, writer.task)
    statement.setLong(5, writer.run)
    statement.setInt(6, writer.attempt)
    statement.setLong(7, sequence - 1)
  }
}
