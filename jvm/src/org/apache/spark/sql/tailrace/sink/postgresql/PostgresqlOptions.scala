package org.apache.spark.sql.tailrace.sink.postgresql

import java.io.IOException
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path}
import java.util.{Locale, Properties}

import scala.util.Try

import org.apache.spark.network.util.JavaUtils
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import tailrace.TailraceException

/**
 * How to reach the server.
 *
 * @param url      of JDBC, without a password
 * @param password from the option, a file or the environment
 */
final case class ServerOptions(url: String, user: Option[String], password: Option[String]) {
  import ServerOptions._

  /** For texts: the server and the database, without parameters. */
  def name: String = url.stripPrefix(Prefix).stripPrefix("//").takeWhile(_ != '?')

  def properties: Properties = {
    val properties = new Properties
    Defaults.foreach { case (key, value) => properties.setProperty(key, value) }
    user.foreach(properties.setProperty("user", _))
    password.foreach(properties.setProperty("password", _))
    properties
  }

  override def toString: String = s"ServerOptions($name)"
}

object ServerOptions {
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
final case class PostgresqlOptions(
    server: ServerOptions,
    table: String,
    keyColumns: Seq[String],
    stateSchema: Option[String],
    batchRows: Int,
    retryMs: Long) {
  // The password is among them.
  override def toString: String = s"PostgresqlOptions($table)"
}

object PostgresqlOptions {
  private val DefaultBatchRows = "1000"
  private val DefaultRetry = "120s"
  private val PasswordVariable = "PGPASSWORD"

  /** Throws the first problem. */
  def of(options: CaseInsensitiveStringMap): PostgresqlOptions = {
    val url = required(options, "url", "jdbc:postgresql://host:5432/database")
    checkUrl(url)
    PostgresqlOptions(
      ServerOptions(url, get(options, "user"), password(options)),
      required(options, "dbtable", "schema.table"),
      keyColumns(options),
      get(options, "stateSchema"),
      get(options, "batchsize").getOrElse(DefaultBatchRows).toIntOption.filter(_ > 0).getOrElse(
        throw bad("batchsize is not a positive number", ".option(\"batchsize\", \"1000\")")),
      duration(options, "retryTimeout", DefaultRetry))
  }

  private def checkUrl(url: String): Unit = {
    if (!url.startsWith(ServerOptions.Prefix)) {
      throw bad("url is not one of PostgreSQL", ".option(\"url\", \"jdbc:postgresql://host:5432/database\")")
    }
    val parameters = url.dropWhile(_ != '?').drop(1).split('&').map(_.takeWhile(_ != '=').toLowerCase(Locale.ROOT))
    if (parameters.exists(_.contains("password")) || url.takeWhile(_ != '?').contains('@')) {
      throw bad(
        "url contains a password, which logs and plans would show",
        s"remove it, and set passwordFile or the environment variable $PasswordVariable.")
    }
  }

  /** Read on the driver, which hands it to the tasks. */
  private def password(options: CaseInsensitiveStringMap): Option[String] =
    Option(options.get("password")).orElse(get(options, "passwordFile").map(fromFile)).orElse(
      sys.env.get(PasswordVariable))

  private def fromFile(file: String): String =
    try Files.readString(Path.of(file), UTF_8).stripLineEnd
    catch {
      case failure: IOException =>
        throw bad(
          s"passwordFile $file cannot be read: ${failure.getClass.getSimpleName}",
          "name a file on the driver's machine that holds only the password and that this user may read.")
    }

  private def keyColumns(options: CaseInsensitiveStringMap): Seq[String] =
    get(options, "keyColumns").toSeq.flatMap(_.split(',')).map(_.trim).filter(_.nonEmpty) match {
      case keys if keys.distinct.length < keys.length =>
        throw bad("keyColumns names a column twice", ".option(\"keyColumns\", \"id\")")
      case keys => keys
    }

  private def duration(options: CaseInsensitiveStringMap, key: String, default: String): Long = {
    val text = get(options, key).getOrElse(default)
    Try(JavaUtils.timeStringAsMs(text.replaceAll("\\s+", "").toLowerCase(Locale.ROOT))).toOption.filter(
      _ > 0).getOrElse(
      throw bad(s"$key is '$text', which is not a duration", s".option(\"$key\", \"$default\")"))
  }

  private def get(options: CaseInsensitiveStringMap, key: String): Option[String] =
    Option(options.get(key)).map(_.trim).filter(_.nonEmpty)

  private def required(options: CaseInsensitiveStringMap, key: String, example: String): String =
    get(options, key).getOrElse(throw bad(s"the option $key is missing", s".option(\"$key\", \"$example\")"))

  private def bad(problem: String, fix: String) = new TailraceException("TAILRACE_BAD_SINK_OPTION", s"$problem.", fix)
}
