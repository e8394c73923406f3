package org.apache.spark.sql.tailrace.sink.postgresql

import java.sql.{Connection, SQLException}

import org.apache.spark.sql.tailrace.sink.store.{Connections, StoreProblem, StoreServer}
import org.apache.spark.sql.types.{DataType, StructType}
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import tailrace.TailraceException

/** Compares a query with the table that it writes to, on the real server. */
private[tailrace] object TableCheck {
  private val Suggested = Seq(
    "bool",
    "int2",
    "int4",
    "int8",
    "float4",
    "float8",
    "numeric",
    "text",
    "bytea",
    "date",
    "timestamptz",
    "timestamp").map(kind => TargetColumn("", kind, kind, "", needed = false, writable = true))

  /** Everything that keeps the query from being written, before it starts. */
  def problems(options: CaseInsensitiveStringMap, query: StructType): Seq[StoreProblem] =
    try {
      val read = PostgresqlOptions.of(options)
      val connection = Connections.take(read.server)
      try problems(connection, read, query)
      finally read.server.close(connection)
    } catch {
      case failure: TailraceException => Seq(StoreProblem.of(failure))
      case failure: SQLException => Seq(notConnected(options.get("url"), failure))
    }

  /** The table, if the query can be written to it. Throws all problems at once. */
  def require(connection: Connection, options: PostgresqlOptions, query: StructType): TargetTable = {
    StoreProblem.refuse(problems(connection, options, query))
    TargetTable.find(connection, options.table).get
  }

  private def problems(connection: Connection, options: PostgresqlOptions, query: StructType): Seq[StoreProblem] =
    findTable(connection, options) match {
      case None =>
        Seq(StoreProblem(
          "TAILRACE_SINK_TABLE_MISSING",
          s"there is no table ${options.table} at ${options.server.address}, or this user may not see it.",
          s"create it: ${createTable(options, query)}"))
      case Some(table) if !table.isTable =>
        Seq(StoreProblem(
          "TAILRACE_SINK_TABLE_MISSING",
          s"${options.table} at ${options.server.address} is not a table.",
          "name an ordinary or a partitioned table in the option dbtable."))
      case Some(table) =>
        columnProblems(table, query) ++ keyProblems(connection, table, options, query) ++
          new Rights(connection, table, options).problems(query)
    }

  /** The text of the option is a name for PostgreSQL to parse, and may not be one. */
  private def findTable(connection: Connection, options: PostgresqlOptions): Option[TargetTable] =
    try TargetTable.find(connection, options.table)
    catch { case failure: SQLException if Option(failure.getSQLState).exists(_.startsWith("42")) => None }

  private def columnProblems(table: TargetTable, query: StructType): Seq[StoreProblem] = {
    val written = query.fields.toSeq.map(field => field -> table.column(field.name))
    val wrong = written.collect {
      case (field, None) =>
        StoreProblem(
          "TAILRACE_SINK_COLUMN_MISSING",
          s"the table ${table.quoted} has no column for the query's column ${field.name}.",
          s"ALTER TABLE ${table.quoted} ADD COLUMN ${Sql.quote(field.name)} ${suggestedType(field.dataType)}; " +
            s"or drop the column from the query: .drop(\"${field.name}\").")
      case (field, Some(column)) if !column.writable =>
        StoreProblem(
          "TAILRACE_SINK_COLUMN_TYPE",
          s"PostgreSQL computes the column ${column.name} of ${table.quoted} by itself.",
          s"drop the column from the query: .drop(\"${field.name}\").")
      case (field, Some(column)) if !ColumnValues.fits(field.dataType, column) =>
        StoreProblem(
          "TAILRACE_SINK_COLUMN_TYPE",
          s"the query's column ${field.name} is ${field.dataType.sql}, and the column ${column.name} of " +
            s"${table.quoted} is ${column.typeName}.",
          castFix(field.name, field.dataType, column))
    }
    val twice = written.collect { case (field, Some(column)) => column.name -> field.name }.groupMap(_._1)(_._2)
      .filter(_._2.length > 1).map { case (column, fields) =>
        StoreProblem(
          "TAILRACE_SINK_COLUMN_MISSING",
          s"the query has several columns for ${column} of ${table.quoted}: ${fields.mkString(", ")}.",
          "rename or drop all of them but one.")
      }
    val missing = table.columns.filter(_.needed).filterNot(column => written.exists(_._2.contains(column))).map {
      column =>
        StoreProblem(
          "TAILRACE_SINK_COLUMN_REQUIRED",
          s"the column ${column.name} of ${table.quoted} is NOT NULL without a default, and the query has no column " +
            "of that name.",
          s"add it to the query, or ALTER TABLE ${table.quoted} ALTER COLUMN ${Sql.quote(column.name)} DROP NOT NULL.")
    }
    wrong ++ twice ++ missing
  }

  private def castFix(name: String, from: DataType, column: TargetColumn): String = {
    val cast = column.kind match {
      case "bool" => Some("boolean")
      case "int2" | "int4" => Some("int")
      case "int8" => Some("long")
      case "float4" | "float8" => Some("double")
      case "numeric" => Some("decimal(38, 18)")
      case "timestamptz" | "timestamp" => Some("timestamp")
      case kind @ ("date" | "bytea") => Some(if (kind == "date") kind else "binary")
      case _ => None
    }
    def isNested = from.typeName == "struct" || from.typeName == "map"
    cast.map(to => s"cast it: .withColumn(\"$name\", F.col(\"$name\").cast(\"$to\")).").getOrElse(
      if (column.kind.startsWith("json") && isNested) s"write it as JSON: .withColumn(\"$name\", F.to_json(\"$name\"))."
      else s"cast it to a type that ${column.typeName} is written from; docs/guide/postgresql.md lists them.")
  }

  private def keyProblems(
      connection: Connection,
      table: TargetTable,
      options: PostgresqlOptions,
      query: StructType): Seq[StoreProblem] = if (options.keyColumns.isEmpty) Nil
  else {
    val names = query.fieldNames.toSeq
    val absent = options.keyColumns.filterNot(key => names.exists(_.equalsIgnoreCase(key)))
    val keys = options.keyColumns.flatMap(table.column).map(_.name)
    if (absent.nonEmpty) {
      absent.map(key =>
        StoreProblem(
          "TAILRACE_SINK_COLUMN_MISSING",
          s"keyColumns names $key, and the query has no such column.",
          s"add it to the query, or correct .option(\"keyColumns\", \"${options.keyColumns.mkString(",")}\")."))
    } else if (keys.length == options.keyColumns.length && !isUnique(connection, table, keys)) {
      val columns = keys.map(Sql.quote).mkString(", ")
      Seq(StoreProblem(
        "TAILRACE_SINK_KEY_NOT_UNIQUE",
        s"the table ${table.quoted} has no unique constraint on exactly ($columns), so an upsert by keyColumns " +
          "cannot find the row to replace.",
        s"ALTER TABLE ${table.quoted} ADD UNIQUE ($columns)."))
    } else Nil
  }

  /** ON CONFLICT needs an index on these columns, without a condition, that is not checked at the end only. */
  private def isUnique(connection: Connection, table: TargetTable, keys: Seq[String]): Boolean =
    Sql.query(connection, UniqueIndexes)(_.setLong(1, table.oid))(_.getString(1)).exists(
      _.split('\u0001').toSet == keys.toSet)

  private val UniqueIndexes =
    """SELECT string_agg(a.attname, E'\x01') FROM pg_catalog.pg_index i
      |JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey[0:i.indnkeyatts - 1])
      |WHERE i.indrelid = ?::oid AND i.indisunique AND i.indisvalid AND i.indimmediate AND i.indpred IS NULL
      |      AND i.indexprs IS NULL
      |GROUP BY i.indexrelid, i.indnkeyatts HAVING count(*) = i.indnkeyatts""".stripMargin

  private def createTable(options: PostgresqlOptions, query: StructType): String = {
    val columns = query.fields.map(field => s"${Sql.quote(field.name)} ${suggestedType(field.dataType)}")
    val key = Option.when(options.keyColumns.nonEmpty)(
      s"PRIMARY KEY (${options.keyColumns.map(Sql.quote).mkString(", ")})")
    s"CREATE TABLE ${options.table} (${(columns ++ key).mkString(", ")});"
  }

  private def suggestedType(from: DataType): String = {
    def fitting(kinds: String*) = kinds.find(kind =>
      Suggested.exists(one =>
        one.kind == kind &&
          ColumnValues.fits(from, one)))
    from match {
      case org.apache.spark.sql.types.ArrayType(element, _) => s"${suggestedType(element).stripSuffix("[]")}[]"
      case org.apache.spark.sql.types.LongType => "int8"
      case org.apache.spark.sql.types.DoubleType => "float8"
      case _ => fitting("int4", "float4").orElse(fitting(Suggested.map(_.kind): _*)).getOrElse("jsonb")
    }
  }

  private def notConnected(url: String, failure: SQLException): StoreProblem = {
    val server = ServerOptions(url, None, None)
    val isRefused = Option(failure.getSQLState).exists(state => state.startsWith("28") || state.startsWith("3D"))
    if (isRefused) {
      StoreProblem(
        SqlErrors.Refused,
        s"PostgreSQL at ${server.address} does not let this user in: ${StoreServer.messageOf(failure)}",
        "check user, passwordFile (or PGPASSWORD) and the database in the url.")
    } else {
      StoreProblem(
        SqlErrors.Unreachable,
        s"PostgreSQL at ${server.address} cannot be reached: ${StoreServer.messageOf(failure)}",
        "check the option url, and that the server is up. tailrace.EmbeddedPostgres starts one for a test.")
    }
  }

}
