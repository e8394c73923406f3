package org.apache.spark.sql.tailrace.sink.redis

import java.io.IOException
import java.net.{URI, URISyntaxException}
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path}

import org.apache.spark.sql.tailrace.internals.{RedisAddress, RedisConnection, RedisError, RedisUnreachable}
import org.apache.spark.sql.tailrace.sink.store.{StoreOptions, StoreServer}
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import tailrace.TailraceException

/** What a key of Redis holds. */
private[redis] sealed abstract class Structure(val name: String)

private[redis] object Structure {
  case object Hash extends Structure("hash")
  case object Text extends Structure("string")
  case object SortedSet extends Structure("sorted-set")
  case object Stream extends Structure("stream")

  val All: Seq[Structure] = Seq(Hash, Text, SortedSet, Stream)
}

/** How to reach the server. */
private[redis] final case class RedisServer(address: RedisAddress) extends StoreServer[RedisConnection] {
  import RedisServer._

  /** Without the user. */
  def url: String =
    s"${if (address.tls) "rediss" else "redis"}://${address.host}:${address.port}/${address.database}"

  override def name: String = s"Redis at ${address.host}:${address.port}/${address.database}"

  override def open(): RedisConnection = address.connect()
  override def close(connection: RedisConnection): Unit = connection.close()
  override def abort(connection: RedisConnection): Unit = connection.abort()

  // Each script is one by itself.
  override def transaction[T](connection: RedisConnection)(work: RedisConnection => T): T = work(connection)

  override def isOwnFailure(failure: Throwable): Boolean =
    failure.isInstanceOf[RedisError] || failure.isInstanceOf[RedisUnreachable]

  override def isTransient(failure: Throwable): Boolean = failure match {
    case _: RedisUnreachable => true
    case error: RedisError => TransientCodes(error.code) || error.getMessage.contains("max number of clients")
    case _ => false
  }

  override def keepsConnection(failure: Throwable): Boolean = failure match {
    // Behind the same address there may be another server by now.
    case error: RedisError => error.code != "READONLY" && TransientCodes(error.code)
    case _ => false
  }

  // A script takes the rows that it can, and tells which ones it cannot.
  override def isOfSomeRow(failure: Throwable): Boolean = false

  override def unreachable(failure: Throwable, forMs: Long): TailraceException = StoreServer.withCause(
    new TailraceException(
      Unreachable,
      s"$name has taken no rows for ${forMs / 1000} s: ${StoreServer.messageOf(failure)}",
      "check that the server is up, accepts writes and has memory left; the next run continues where this one ended. " +
        "If the server needs longer for a restart, raise the option retryTimeout."),
    failure)

  override def refused(failure: Throwable): TailraceException = StoreServer.withCause(
    new TailraceException(
      Refused,
      s"$name refused the rows: ${StoreServer.messageOf(failure)}",
      "check the user, the password and its rights (ACL), and start the query again; no row is lost."),
    failure)

  // The password is among its fields.
  override def toString: String = s"RedisServer($url)"
}

private[redis] object RedisServer {
  val Unreachable = "TAILRACE_REDIS_UNREACHABLE"
  val Refused = "TAILRACE_REDIS_REFUSED"

  // Starting up; a script that runs for too long; a replica; out of memory; its disk is full; replicas are missing.
  private val TransientCodes =
    Set("LOADING", "BUSY", "READONLY", "MASTERDOWN", "OOM", "MISCONF", "NOREPLICAS")
}

/**
 * The writer's options.
 *
 * @param key            from which the key of each row is made
 * @param value          the column of a string; none for the row as JSON
 * @param maxLength      of a stream, about
 * @param ttlMs          after which a key expires, counted from its last row
 * @param batchRows      how many rows a batch may have
 * @param retryMs        how long the server may be away
 * @param failOnDataLoss false to continue if the server has lost rows of committed epochs
 */
private[redis] final case class RedisOptions(
    server: RedisServer,
    structure: Structure,
    key: KeyTemplate,
    member: Option[String],
    score: Option[String],
    value: Option[String],
    maxLength: Option[Int],
    ttlMs: Option[Long],
    batchRows: Int,
    retryMs: Long,
    failOnDataLoss: Boolean) {

  /** Where the rows go, without the server. */
  def output: String =
    s"${structure.name} ${key.text} ${Seq(member, score, value).map(_.getOrElse("")).mkString(" ")}"

  // The password is among them.
  override def toString: String = s"RedisOptions(${structure.name} ${key.text})"
}

private[redis] object RedisOptions {
  private val PasswordVariable = "REDIS_PASSWORD"
  private val Example = "redis://host:6379/0"
  private val DefaultPort = 6379

  /** Throws the first problem. */
  def of(options: CaseInsensitiveStringMap): RedisOptions = {
    val read = new StoreOptions(options)
    val structure = structureOf(read)
    val only = new OnlyFor(read, structure)
    RedisOptions(
      RedisServer(addressOf(read)),
      structure,
      KeyTemplate.parse(read.required("key", "user:{user_id}")),
      only("member", Structure.SortedSet, "player", isNeeded = true),
      only("score", Structure.SortedSet, "points", isNeeded = true),
      only("value", Structure.Text, "column", isNeeded = false),
      only("maxLen", Structure.Stream, "100000", isNeeded = false).map(_ => read.positive("maxLen", "100000")),
      read.durationMs("ttl"),
      read.batchRows,
      read.retryMs,
      failOnDataLoss = !read.get("failOnDataLoss").exists(_.equalsIgnoreCase("false")))
  }

  private def structureOf(read: StoreOptions): Structure = {
    val names = Structure.All.map(_.name).mkString(", ")
    val named = read.required("structure", Structure.Hash.name)
    Structure.All.find(_.name.equalsIgnoreCase(named)).getOrElse(
      throw StoreOptions.bad(s"structure is '$named', which is none of $names", ".option(\"structure\", \"hash\")"))
  }

  /** Options that only one structure has. */
  private final class OnlyFor(read: StoreOptions, structure: Structure) {
    def apply(key: String, needs: Structure, example: String, isNeeded: Boolean): Option[String] =
      if (structure == needs) {
        if (isNeeded) Some(read.required(key, example)) else read.get(key)
      } else {
        read.get(key).foreach(_ =>
          throw StoreOptions.bad(
            s"the option $key is for the structure ${needs.name}, and this one is ${structure.name}",
            s"remove $key, or .option(\"structure\", \"${needs.name}\")"))
        None
      }
  }

  private def addressOf(read: StoreOptions): RedisAddress = {
    val url = read.required("url", Example)
    val uri =
      try new URI(url)
      catch { case _: URISyntaxException => throw badUrl }
    if (!Set("redis", "rediss")(uri.getScheme) || uri.getHost == null || uri.getQuery != null) {
      throw badUrl
    }
    val user = Option(uri.getUserInfo).filter(_.nonEmpty)
    if (user.exists(_.contains(':'))) {
      throw StoreOptions.passwordInUrl(PasswordVariable)
    }
    val path = Option(uri.getPath).map(_.stripPrefix("/")).filter(_.nonEmpty)
    RedisAddress(
      uri.getHost,
      if (uri.getPort < 0) DefaultPort else uri.getPort,
      path.map(_.toIntOption.filter(_ >= 0).getOrElse(throw badUrl)).getOrElse(0),
      read.get("user").orElse(user),
      read.password(PasswordVariable),
      tls = uri.getScheme == "rediss",
      read.get("caFile").map(certificates))
  }

  private def badUrl =
    StoreOptions.bad("url is not one of Redis", s".option(\"url\", \"$Example\"), or rediss://… for TLS")

  /** Read on the driver, which hands them to the tasks. */
  private def certificates(file: String): String =
    try Files.readString(Path.of(file), UTF_8)
    catch {
      case failure: IOException =>
        throw StoreOptions.bad(
          s"caFile $file cannot be read: ${failure.getClass.getSimpleName}",
          "name a file on the driver's machine with the certificates to trust, in PEM form.")
    }
}
