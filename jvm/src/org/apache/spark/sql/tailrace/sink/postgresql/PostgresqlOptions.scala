package org.apache.spark.sql.tailrace.sink.postgresql

import java.sql.{Connection, SQLException}
import java.util.{Locale, Properties}

import org.apache.spark.sql.tailrace.internals.PostgresqlDriver
import org.apache.spark.sql.tailrace.sink.store.{StoreOptions, StoreServer}
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import tailrace.TailraceException

/**
 * How to reach the server.
 *
 * @param url      of JDBC, without a password
 * @param password from the option, a file or the environment
 */
private[postgresql] final case class ServerOptions(url: String, user: Option[String], password: Option[String])
    extends StoreServer[Connection] {
  import ServerOptions._

  /** The server and the database, without parameters. */
  def address: String = url.stripPrefix(Prefix).stripPrefix("//").takeWhile(_ != '?')

  override def name: String = s"PostgreSQL at $address"

  /** In autocommit mode: a statement is a transaction. */
  override def open(): Connection = {
    val connection = PostgresqlDriver.connect(url, properties)
    try {
      // Fencing relies on it: a statement that waited for a lock sees what has been committed meanwhile.
      connection.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED)
      // An acknowledged row must survive a crash of the server, because Spark does not replay a committed epoch.
      Sql.execute(
        connection,
        "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'")
      connection
    } catch {
      case failure: Throwable =>
        close(connection)
        throw failure
    }
  }

  override def close(connection: Connection): Unit =
    try connection.close()
    catch { case _: SQLException => }

  override def abort(connection: Connection): Unit = connection.abort((task: Runnable) => task.run())

  override def transaction[T](connection: Connection)(work: Connection => T): T = {
    connection.setAutoCommit(false)
    val result = work(connection)
    connection.commit()
    // Only now: after a failure this would commit.
    connection.setAutoCommit(true)
    result
  }

  override def isOwnFailure(failure: Throwable): Boolean = failure.isInstanceOf[SQLException]
  override def isTransient(failure: Throwable): Boolean = SqlErrors.isTransient(failure)
  override def keepsConnection(failure: Throwable): Boolean = SqlErrors.keepsConnection(failure)
  override def isOfSomeRow(failure: Throwable): Boolean = SqlErrors.isOfSomeRow(failure)
  override def unreachable(failure: Throwable, forMs: Long): TailraceException =
    SqlErrors.unreachable(name, failure, forMs)
  override def refused(failure: Throwable): TailraceException = SqlErrors.refused(name, failure)

  private def properties: Properties = {
    val properties = new Properties
    Defaults.foreach { case (key, value) => properties.setProperty(key, value) }
    user.foreach(properties.setProperty("user", _))
    password.foreach(properties.setProperty("password", _))
    properties
  }

  override def toString: String = s"ServerOptions($address)"
}

private[postgresql] object ServerOptions {
  val Prefix = "jdbc:postgresql:"

  // What the URL says counts more.
  private val Defaults = Seq(
    "ApplicationName" -> "tailrace",
    "tcpKeepAlive" -> "true",
    "connectTimeout" -> "10",
    // A server that is cut off must not hold a task forever. A statement that is still running then is not lost: the
    // next one waits for it.
    "socketTimeout" -> "60",
    // There is only one statement, and it is sent over and over.
    "prepareThreshold" -> "1")
}

/**
 * The writer's options.
 *
 * @param table       as the user wrote it; PostgreSQL itself finds what it means
 * @param keyColumns  none to append
 * @param stateSchema where Tailrace keeps its own tables; by default in the schema of the table
 * @param batchRows   how many rows a transaction may have
 * @param retryMs     how long the server may be away
 */
private[postgresql] final case class PostgresqlOptions(
    server: ServerOptions,
    table: String,
    keyColumns: Seq[String],
    stateSchema: Option[String],
    batchRows: Int,
    retryMs: Long) {
  // The password is among them.
  override def toString: String = s"PostgresqlOptions($table)"
}

private[postgresql] object PostgresqlOptions {
  private val PasswordVariable = "PGPASSWORD"

  /** Throws the first problem. */
  def of(options: CaseInsensitiveStringMap): PostgresqlOptions = {
    val read = new StoreOptions(options)
    val url = read.required("url", "jdbc:postgresql://host:5432/database")
    checkUrl(url)
    PostgresqlOptions(
      ServerOptions(url, read.get("user"), read.password(PasswordVariable)),
      read.required("dbtable", "schema.table"),
      read.columns("keyColumns"),
      read.get("stateSchema"),
      read.batchRows,
      read.retryMs)
  }

  private def checkUrl(url: String): Unit = {
    if (!url.startsWith(ServerOptions.Prefix)) {
      throw StoreOptions.bad(
        "url is not one of PostgreSQL",
        ".option(\"url\", \"jdbc:postgresql://host:5432/database\")")
    }
    val parameters = url.dropWhile(_ != '?').drop(1).split('&').map(_.takeWhile(_ != '=').toLowerCase(Locale.ROOT))
    if (parameters.exists(_.contains("password")) || url.takeWhile(_ != '?').contains('@')) {
      throw StoreOptions.passwordInUrl(PasswordVariable)
    }
  }
}
