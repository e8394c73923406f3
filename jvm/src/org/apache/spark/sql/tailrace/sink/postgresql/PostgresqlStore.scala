package org.apache.spark.sql.tailrace.sink.postgresql

import java.sql.Connection
import java.time.ZoneId
import java.util.{Arrays => JArrays, HashMap => JHashMap}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.BoundReference
import org.apache.spark.sql.tailrace.sink.store._
import org.apache.spark.sql.types.StructType

/** A row for a table. */
private[postgresql] final class TableRow(
    val key: Any,
    val values: Array[AnyRef],
    override val keyHash: Long,
    override val contentHash: Long,
    override val bytes: Int)
    extends StoreRow

/** A table of PostgreSQL that a run writes to. */
private[postgresql] final case class PostgresqlStore(
    options: PostgresqlOptions,
    table: TargetTable,
    state: StateTables,
    schema: StructType,
    fingerprint: String,
    timeZone: String)
    extends Store[Connection, TableRow] {
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

  override def server: StoreServer[Connection] = options.server
  override def retryMs: Long = options.retryMs
  override def batchRows: Int = options.batchRows
  override def hasKey: Boolean = keys.nonEmpty

  override def newRowReader(): RowReader[TableRow] = new TableRowReader(this)

  override def newBatchWriter(writer: WriterKey): BatchWriter[Connection, TableRow] = new TableBatchWriter(this, writer)

  override def claimWriter(connection: Connection, writer: WriterKey): Option[Long] =
    state.claimWriter(connection, writer)

  override def readJournal(connection: Connection, query: String): JournalContent =
    state.readJournal(connection, query, table.oid)

  override def purge(connection: Connection, query: String, run: Long, before: Long): Unit =
    state.purge(connection, query, run, before)
}

/** A batch is a transaction of a single statement. */
private[postgresql] final class TableBatchWriter(store: PostgresqlStore, writer: WriterKey)
    extends BatchWriter[Connection, TableRow] {
  private val statement = new WriteStatement(store, writer)

  override def write(
      connection: Connection,
      sequence: Long,
      rows: Seq[PendingRow[TableRow]]): Seq[(PendingRow[TableRow], Throwable)] = {
    val written = if (store.hasKey) TableBatchWriter.lastOfEachKey(rows) else rows
    val count = statement.execute(connection, sequence, rows, written)
    // A lost connection leaves it open whether the transaction was committed. Then it has been, and was sent again.
    if (count == 0 && !store.state.sequenceOf(connection, writer).contains(sequence)) {
      throw Store.newerRun()
    }
    Nil
  }
}

private[postgresql] object TableBatchWriter {
  /**
   * A statement cannot change a row twice. Sorted, because two tasks that write the same keys in different orders would
   * wait for each other.
   */
  def lastOfEachKey(batch: Seq[PendingRow[TableRow]]): Seq[PendingRow[TableRow]] =
    if (batch.length == 1) batch
    else {
      val last = new JHashMap[Any, PendingRow[TableRow]](2 * batch.length)
      batch.foreach(row => last.put(row.content.key, row))
      val rows = last.values().toArray(new Array[PendingRow[TableRow]](last.size))
      JArrays.sort(
        rows,
        (one: PendingRow[TableRow], other: PendingRow[TableRow]) =>
          java.lang.Long.compare(one.keyHash, other.keyHash))
      rows.toIndexedSeq
    }
}

private[postgresql] final class TableRowReader(store: PostgresqlStore) extends RowReader[TableRow] {
  private val keys = store.keys.map(key => store.columns.indexWhere(_.name == key)).toArray
  private val columns = store.values.toArray
  private val whole = new RowHash(store.schema)
  private val ofKey = new RowHash(keys.toSeq.map { at =>
    BoundReference(at, store.schema(at).dataType, store.schema(at).nullable)
  })
  // Another table gets its rows, whatever the first one holds.
  private val seed = store.table.oid

  override def read(row: InternalRow): TableRow = {
    val values = columns.map(_.of(row))
    val keyHash = if (keys.isEmpty) seed else ofKey.hash(row, seed)
    new TableRow(keyOf(values), values, keyHash, whole.hash(row, keyHash), whole.size)
  }

  /** What makes two rows of a batch the same one for PostgreSQL. */
  private def keyOf(values: Array[AnyRef]): Any = if (keys.length == 1) keyPart(values(keys(0)))
  else keys.toSeq.map(at => keyPart(values(at)))

  private def keyPart(value: AnyRef): Any = value match {
    case bytes: Array[Byte] => bytes.toSeq
    case other => other
  }
}
