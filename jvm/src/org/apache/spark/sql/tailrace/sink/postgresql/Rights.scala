package org.apache.spark.sql.tailrace.sink.postgresql

import java.sql.Connection

import org.apache.spark.sql.tailrace.sink.store.StoreProblem
import org.apache.spark.sql.types.StructType

/** What the user of the sink must be allowed to do. */
private[postgresql] final class Rights(connection: Connection, table: TargetTable, options: PostgresqlOptions) {
  import Rights._

  private val state = StateTables.of(options, table)

  def problems(query: StructType): Seq[StoreProblem] = {
    val columns = query.fieldNames.toSeq.flatMap(table.column).map(_.name)
    val keys = options.keyColumns.flatMap(table.column).map(_.name)
    val needed =
      columns.map(_ -> "INSERT") ++
        (if (keys.isEmpty) Nil else keys.map(_ -> "SELECT") ++ columns.map(_ -> "UPDATE"))
    val missing = needed.filterNot { case (column, right) => mayUse(column, right) }.groupMap(_._2)(_._1)
    missing.toSeq.sortBy(_._1).map { case (right, of) =>
      val named = of.map(Sql.quote).mkString(", ")
      lacks(
        s"may not $right the columns $named of ${table.quoted}",
        s"GRANT $right ON ${table.quoted} TO ${Sql.quote(user)}.")
    } ++ ofState ++ ofServer
  }

  private def ofState: Seq[StoreProblem] = {
    val existing = StateTables.Names.filter(name => answer(Exists, s"${state.quotedSchema}.$name"))
    val unusable = existing.flatMap(name => StateRights.filterNot(mayUseState(name, _)).map(_ -> name))
    val unreachable =
      if (!answer(SchemaExists, state.schema)) {
        Some(lacks(
          s"needs a schema ${state.quotedSchema} for Tailrace's own tables, and there is none",
          s"CREATE SCHEMA ${state.quotedSchema} AUTHORIZATION ${Sql.quote(user)}."))
      } else if (existing.length < StateTables.Names.length && !answer(MayCreate, state.schema)) {
        Some(lacks(
          s"may not create Tailrace's own tables in the schema ${state.quotedSchema}",
          s"GRANT CREATE ON SCHEMA ${state.quotedSchema} TO ${Sql.quote(user)}; or set stateSchema to a schema in " +
            "which this user may create tables."))
      } else None
    unreachable.toSeq ++ unusable.groupMap(_._1)(_._2).toSeq.sortBy(_._1).map { case (right, names) =>
      lacks(
        s"may not $right ${names.mkString(", ")} in the schema ${state.quotedSchema}",
        s"GRANT ${StateRights.mkString(", ")} ON " +
          s"${StateTables.Names.map(name => s"${state.quotedSchema}.$name").mkString(", ")} TO ${Sql.quote(user)}.")
    }
  }

  private def ofServer: Option[StoreProblem] = Option.when(answer(IsReadOnly))(
    StoreProblem(
      "TAILRACE_SINK_RIGHTS_MISSING",
      s"${options.server.address} accepts no writes: it is a replica, or its transactions are read-only.",
      "name the primary in the option url; with several hosts, add ?targetServerType=primary."))

  private def mayUse(column: String, right: String): Boolean =
    Sql.query(connection, MayUseColumn) { statement =>
      statement.setLong(1, table.oid)
      statement.setString(2, column)
      statement.setString(3, right)
    }(_.getBoolean(1)).exists(identity)

  private def mayUseState(name: String, right: String): Boolean =
    answer(MayUseTable, s"${state.quotedSchema}.$name", right)

  private def answer(sql: String, texts: String*): Boolean =
    Sql.query(connection, sql) { statement =>
      texts.zipWithIndex.foreach { case (text, at) => statement.setString(at + 1, text) }
    }(_.getBoolean(1)).exists(identity)

  private def lacks(what: String, fix: String): StoreProblem =
    StoreProblem("TAILRACE_SINK_RIGHTS_MISSING", s"the user $user $what.", fix)

  private lazy val user: String =
    Sql.query(connection, "SELECT current_user")(_ => ())(_.getString(1)).head
}

private object Rights {
  private val StateRights = Seq("SELECT", "INSERT", "UPDATE", "DELETE")
  private val MayUseColumn = "SELECT pg_catalog.has_column_privilege(?::oid, ?, ?)"
  private val MayUseTable = "SELECT pg_catalog.has_table_privilege(?, ?)"
  private val MayCreate = "SELECT pg_catalog.has_schema_privilege(?, 'CREATE')"
  private val Exists = "SELECT pg_catalog.to_regclass(?) IS NOT NULL"
  private val SchemaExists = "SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = ?)"
  private val IsReadOnly = "SELECT pg_catalog.current_setting('transaction_read_only') = 'on'"
}
