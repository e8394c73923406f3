package org.apache.spark.sql.tailrace.sink.postgresql

import java.sql.{Connection, PreparedStatement, ResultSet}

/**
 * A column of the table that a query writes to.
 *
 * @param typeName as in a cast, for example `timestamp with time zone`
 * @param kind     PostgreSQL's own name of the type, such as `int4`; with a leading underscore for an array of it
 * @param category PostgreSQL's category of the type: `S` for texts, `E` for enums
 * @param needed   true if a row without it is refused
 * @param writable false if PostgreSQL computes it
 */
private[postgresql] final case class TargetColumn(
    name: String,
    typeName: String,
    kind: String,
    category: String,
    needed: Boolean,
    writable: Boolean)

/** @param oid tells a table from another one of the same name that was created later */
private[postgresql] final case class TargetTable(
    schema: String,
    name: String,
    oid: Long,
    isTable: Boolean,
    columns: Seq[TargetColumn]) {

  /** As in PostgreSQL's own folding of names: `Id` in a query is `id` in a table. */
  def column(name: String): Option[TargetColumn] =
    columns.find(_.name == name).orElse(columns.filter(_.name.equalsIgnoreCase(name)) match {
      case Seq(one) => Some(one)
      case _ => None
    })

  def quoted: String = s"${Sql.quote(schema)}.${Sql.quote(name)}"
}

private[postgresql] object TargetTable {

  /** None if there is no such table, or none that this user may see. */
  def find(connection: Connection, name: String): Option[TargetTable] =
    Sql.query(connection, FindTable)(_.setString(1, name)) { found =>
      (found.getString(1), found.getString(2), found.getLong(3), found.getString(4))
    }.headOption.map { case (schema, table, oid, kind) =>
      TargetTable(schema, table, oid, Set("r", "p")(kind), columnsOf(connection, oid))
    }

  private def columnsOf(connection: Connection, oid: Long): Seq[TargetColumn] =
    Sql.query(connection, FindColumns)(_.setLong(1, oid)) { found =>
      TargetColumn(
        found.getString(1),
        found.getString(2),
        found.getString(3),
        found.getString(4),
        needed = found.getBoolean(5),
        writable = found.getBoolean(6))
    }

  private val FindTable =
    """SELECT n.nspname, c.relname, c.oid::bigint, c.relkind
      |FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
      |WHERE c.oid = pg_catalog.to_regclass(?)""".stripMargin

  // A domain is written as its base type.
  private val FindColumns =
    """SELECT a.attname, pg_catalog.format_type(a.atttypid, -1), coalesce(b.typname, t.typname),
      |       coalesce(b.typcategory, t.typcategory),
      |       a.attnotnull AND NOT a.atthasdef AND a.attidentity = '' AND a.attgenerated = '',
      |       a.attgenerated = '' AND a.attidentity <> 'a'
      |FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
      |     LEFT JOIN pg_catalog.pg_type b ON b.oid = t.typbasetype
      |WHERE a.attrelid = ?::oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum""".stripMargin
}

private[postgresql] object Sql {

  /** An identifier, whatever it contains. */
  def quote(name: String): String = "\"" + name.replace("\"", "\"\"") + "\""

  def query[T](connection: Connection, sql: String)(bind: PreparedStatement => Unit)(read: ResultSet => T): Seq[T] = {
    val statement = connection.prepareStatement(sql)
    try {
      bind(statement)
      val found = statement.executeQuery()
      Iterator.continually(found).takeWhile(_.next()).map(read).toList
    } finally statement.close()
  }

  def update(connection: Connection, sql: String)(bind: PreparedStatement => Unit): Int = {
    val statement = connection.prepareStatement(sql)
    try {
      bind(statement)
      statement.executeUpdate()
    } finally statement.close()
  }

  def execute(connection: Connection, sql: String): Unit = {
    val statement = connection.createStatement()
    try statement.execute(sql)
    finally statement.close()
  }
}
