package org.apache.spark.sql.tailrace.sink.postgresql

import java.sql.SQLException
import java.time.{Instant, LocalDate, LocalDateTime}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.tailrace.origin.{RowId, SourcePartition}
import org.apache.spark.sql.tailrace.sink.store.{JournalCodec, JournalRow, PendingRow}
import org.apache.spark.sql.types._
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import tailrace.TailraceException

class PostgresqlValuesSuite extends munit.FunSuite {
  private def row(at: SourcePartition, id: RowId, key: Long) = new JournalRow {
    override def source: SourcePartition = at
    override def row: RowId = id
    override def keyHash: Long = key
    override def contentHash: Long = -key
  }

  test("the journal gives back what was put into it") {
    val rows = Seq(
      row(SourcePartition(0, "ünï", 3), RowId(Long.MaxValue, -7L, 2), 11),
      row(SourcePartition.madeByTime(4), RowId.madeByTime(9), Long.MinValue),
      row(SourcePartition(0, "ünï", 3), RowId(1, 0, 0), 12))
    val read = JournalCodec.decode(JournalCodec.encode(rows))
    assertEquals(
      read.map(row => (row.source, row.row, row.keyHash, row.contentHash)),
      rows.map(row => (row.source, row.row, row.keyHash, row.contentHash)))
  }

  test("a journal of another version is refused") {
    val bytes = JournalCodec.encode(Nil)
    bytes(0) = 2
    intercept[IllegalArgumentException](JournalCodec.decode(bytes))
  }

  test("the last row of a key wins, and keys are in the same order for every task") {
    def pending(key: String, hash: Long, ordinal: Int) =
      new PendingRow(SourcePartition(0, "t", 0), RowId(0, 0, ordinal), new TableRow(key, Array(), hash, 0, 1), null)
    val written = TableBatchWriter.lastOfEachKey(
      Seq(pending("b", 2, 0), pending("a", 1, 1), pending("b", 2, 2)))
    assertEquals(written.map(row => (row.content.key, row.row.ordinal)), Seq(("a", 1), ("b", 2)))
  }

  test("dates and times are as PostgreSQL reads them") {
    assertEquals(Times.date(LocalDate.of(-43, 3, 15)), "0044-03-15 BC")
    assertEquals(Times.date(LocalDate.of(12345, 1, 2)), "12345-01-02")
    assertEquals(Times.local(LocalDateTime.of(2024, 2, 29, 1, 2, 3, 4000)), "2024-02-29 01:02:03.000004")
    assertEquals(Times.instant(Instant.parse("2024-02-29T01:02:03Z")), "2024-02-29 01:02:03.000000+00")
  }

  test("types fit as Spark's own JDBC writer maps them") {
    def column(kind: String, category: String = "") =
      TargetColumn("c", kind, kind, category, needed = false, writable = true)
    val fitting = Seq(
      LongType -> "int4",
      LongType -> "numeric",
      StringType -> "jsonb",
      StringType -> "uuid",
      TimestampType -> "timestamptz",
      ArrayType(ArrayType(IntegerType)) -> "_int4",
      BinaryType -> "bytea")
    val others = Seq(
      StringType -> "int4",
      StringType -> "timestamptz",
      TimestampNTZType -> "timestamptz",
      DoubleType -> "int4",
      MapType(StringType, StringType) -> "jsonb",
      ArrayType(StringType) -> "_int4",
      IntegerType -> "_int4")
    fitting.foreach { case (from, kind) => assert(ColumnValues.fits(from, column(kind)), s"$from to $kind") }
    others.foreach { case (from, kind) => assert(!ColumnValues.fits(from, column(kind)), s"$from to $kind") }
    assert(!ColumnValues.fits(StringType, column("pair", category = "C")))
  }

  test("errors of the server, of a row, and of the statement are told apart") {
    def failure(state: String) = new SQLException("", state)
    Seq("08006", "57P01", "53100", "40001", "40P01", "25006").foreach(state =>
      assert(SqlErrors.isTransient(failure(state)), state))
    Seq("23505", "22003", "23514", "P0001", "21000").foreach { state =>
      assert(SqlErrors.isOfSomeRow(failure(state)), state)
      assert(!SqlErrors.isTransient(failure(state)), state)
    }
    Seq("42703", "42501", "28P01").foreach { state =>
      assert(!SqlErrors.isOfSomeRow(failure(state)), state)
      assert(!SqlErrors.isTransient(failure(state)), state)
    }
  }

  test("a password is in no text") {
    val options = PostgresqlOptions.of(new CaseInsensitiveStringMap(Map(
      "url" -> "jdbc:postgresql://host:5432/db?sslmode=require",
      "dbtable" -> "t",
      "password" -> "secret").asJava))
    assertEquals(options.server.password, Some("secret"))
    assert(!s"$options ${options.server}".contains("secret"))
    assertEquals(options.server.address, "host:5432/db")
    val inUrl = intercept[TailraceException](PostgresqlOptions.of(new CaseInsensitiveStringMap(
      Map("url" -> "jdbc:postgresql://host/db?user=me&Password=secret", "dbtable" -> "t").asJava)))
    assertEquals(inUrl.getCondition, "TAILRACE_BAD_SINK_OPTION")
    assert(!inUrl.getMessage.contains("secret"))
  }
}
