package org.apache.spark.sql.tailrace.sink.redis

import org.apache.spark.sql.tailrace.internals.{RedisConnection, RedisError, RedisUnreachable}
import org.apache.spark.sql.tailrace.sink.store.{StoreProblem, StoreServer}
import org.apache.spark.sql.types._
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import tailrace.TailraceException

/** Compares a query with its options, and asks the real server. */
private[tailrace] object RedisCheck {
  private val RightsMissing = "TAILRACE_SINK_RIGHTS_MISSING"
  private val ColumnMissing = "TAILRACE_SINK_COLUMN_MISSING"
  private val ColumnType = "TAILRACE_SINK_COLUMN_TYPE"
  private val MaxColumns = 2000

  /** Everything that keeps the query from being written, before it starts. */
  def problems(options: CaseInsensitiveStringMap, query: StructType): Seq[StoreProblem] =
    try {
      val read = RedisOptions.of(options)
      columnProblems(read, query) ++ ofServer(read)
    } catch { case failure: TailraceException => Seq(StoreProblem.of(failure)) }

  /** Throws all problems at once. */
  def require(connection: RedisConnection, options: RedisOptions, query: StructType): Unit = {
    StoreProblem.refuse(columnProblems(options, query))
    StoreProblem.refuse(serverProblems(connection, options).filterNot(_.code == NotDurable))
  }

  private def ofServer(options: RedisOptions): Seq[StoreProblem] =
    try {
      val connection = options.server.open()
      try serverProblems(connection, options)
      finally connection.close()
    } catch {
      case failure: RedisError if options.server.isTransient(failure) =>
        Seq(StoreProblem(
          RedisServer.Unreachable,
          s"${options.server.name} takes no rows: ${StoreServer.messageOf(failure)}",
          "wait until it does, or find out why in Redis' log."))
      case failure: RedisError =>
        Seq(StoreProblem(
          RedisServer.Refused,
          s"${options.server.name} does not let this user in: ${StoreServer.messageOf(failure)}",
          "check user, passwordFile (or REDIS_PASSWORD) and the database in the url."))
      case failure: RedisUnreachable =>
        Seq(StoreProblem(
          RedisServer.Unreachable,
          s"${options.server.name} cannot be reached: ${StoreServer.messageOf(failure)}",
          "check the option url (rediss:// for TLS, with caFile), and that the server is up. tailrace.EmbeddedRedis " +
            "starts one for a test."))
    }

  private def columnProblems(options: RedisOptions, query: StructType): Seq[StoreProblem] = {
    val named = Seq("key" -> options.key.columns, "member" -> options.member.toSeq, "score" -> options.score.toSeq) :+
      ("value" -> options.value.toSeq)
    val absent =
      for ((option, columns) <- named; column <- columns if !query.fieldNames.contains(column))
        yield StoreProblem(
          ColumnMissing,
          s"the option $option names the column $column, and the query has no such column.",
          s"add it to the query, or name one of ${query.fieldNames.mkString(", ")}.")
    absent ++ (if (absent.isEmpty) unwritten(options, query) ++ types(options, query) else Nil)
  }

  private def unwritten(options: RedisOptions, query: StructType): Seq[StoreProblem] = {
    val fields = RedisColumns.fields(options, query)
    val left = query.fieldNames.toSeq.diff(fields ++ options.key.columns)
    val isWhole = options.structure == Structure.Text && options.value.isEmpty
    if (left.nonEmpty && !isWhole) {
      Seq(StoreProblem(
        ColumnMissing,
        s"the structure ${options.structure.name} has no place for the query's columns ${left.mkString(", ")}.",
        s"drop them from the query: .drop(${left.map(name => s"\"$name\"").mkString(", ")})."))
    } else if (fields.isEmpty && !isWhole) {
      Seq(StoreProblem(
        ColumnMissing,
        "all columns of the query are in the key, and nothing is left to write.",
        "add the columns that the key should hold to the query."))
    } else if (fields.length > MaxColumns) {
      Seq(StoreProblem(
        ColumnMissing,
        s"the query has ${fields.length} columns, and a row of Redis has at most $MaxColumns.",
        "write them as JSON: .option(\"structure\", \"string\")."))
    } else Nil
  }

  private def types(options: RedisOptions, query: StructType): Seq[StoreProblem] = {
    def isNested(from: DataType) = from match {
      case _: ArrayType | _: MapType | _: StructType => true
      case _ => false
    }
    val keys = (options.key.columns ++ options.member).filter(name => isNested(query(name).dataType)).map(name =>
      StoreProblem(
        ColumnType,
        s"the column $name is ${query(name).dataType.sql}, which cannot be a part of a key or a member.",
        s"name a column with one value, such as a part of $name."))
    val scores = options.score.filterNot(name => query(name).dataType.isInstanceOf[NumericType]).map(name =>
      StoreProblem(
        ColumnType,
        s"the column $name is ${query(name).dataType.sql}, and a score is a number.",
        s"cast it: .withColumn(\"$name\", F.col(\"$name\").cast(\"double\"))."))
    keys ++ scores
  }

  val NotDurable = "TAILRACE_REDIS_NOT_DURABLE"

  private def serverProblems(connection: RedisConnection, options: RedisOptions): Seq[StoreProblem] = {
    val server = options.server.name
    infoOf(connection) match {
      case Left(error) => Seq(lacks(server, "INFO", error))
      case Right(info) =>
        val cluster = Option.when(info.get("cluster_enabled").contains("1"))(StoreProblem(
          "TAILRACE_REDIS_CLUSTER",
          s"$server is a node of a cluster. Rows and their journal are written in one atomic step, which a cluster " +
            "offers only for keys of the same slot.",
          "write to a Redis server that is not a cluster; or write to a topic with format(\"tailrace-kafka\")."))
        val old = info.get("redis_version").filter(version => !isAtLeast(version)).map(version =>
          StoreProblem(
            "TAILRACE_REDIS_TOO_OLD",
            s"$server is Redis $version, and the sink needs 6.2 or later.",
            "upgrade the server."))
        val readOnly = Option.when(info.get("role").contains("slave"))(StoreProblem(
          RightsMissing,
          s"$server accepts no writes: it is a replica.",
          "name the primary in the option url."))
        val fatal = cluster.toSeq ++ old ++ readOnly
        if (fatal.nonEmpty) fatal
        else evicts(server, info).toSeq ++ rights(connection, options) ++ durability(server, info)
    }
  }

  /** What Redis evicts to make room would be missing in the journal. */
  private def evicts(server: String, info: Map[String, String]): Option[StoreProblem] = {
    val policy = info.getOrElse("maxmemory_policy", "")
    Option.when(policy.startsWith("allkeys") && !info.get("maxmemory").contains("0"))(StoreProblem(
      "TAILRACE_REDIS_EVICTS",
      s"$server may evict any key when its memory is full (maxmemory-policy $policy): rows, and the journal that " +
        "keeps them from being written twice.",
      "CONFIG SET maxmemory-policy noeviction; or volatile-ttl, which evicts only keys that have a time to live."))
  }

  private def durability(server: String, info: Map[String, String]): Option[StoreProblem] =
    Option.when(info.get("aof_enabled").contains("0"))(StoreProblem(
      NotDurable,
      s"$server does not log its writes (appendonly no): a restart loses acknowledged rows. That is noticed: the " +
        "query then fails, and writes rows since its last commit again, but older ones are gone.",
      "CONFIG SET appendonly yes, and appendfsync always to lose nothing at all."))

  private def infoOf(connection: RedisConnection): Either[RedisError, Map[String, String]] =
    try Right(connection.text("INFO").linesIterator.flatMap { line =>
        line.split(":", 2) match {
          case Array(key, value) => Some(key -> value.trim)
          case _ => None
        }
      }.toMap)
    catch { case error: RedisError => Left(error) }

  private def isAtLeast(version: String): Boolean = version.split('.').take(2).flatMap(_.toIntOption) match {
    case Array(major, minor) => major > 6 || (major == 6 && minor >= 2)
    case _ => true
  }

  /** Redis checks the rights for a command when a transaction collects it, and this one is thrown away. */
  private def rights(connection: RedisConnection, options: RedisOptions): Seq[StoreProblem] =
    try {
      connection.text("MULTI")
      try {
        needed(options).flatMap { command =>
          try {
            connection.text(command.head, command.tail: _*)
            None
          } catch { case error: RedisError => Some(lacks(options.server.name, command.head, error)) }
        }.distinctBy(_.problem)
      } finally connection.text("DISCARD")
    } catch {
      // The sink itself needs no transactions.
      case error: RedisError if error.code == "NOPERM" => Nil
    }

  private def needed(options: RedisOptions): Seq[Seq[String]] = {
    val (key, own) = (options.key.example, s"${RedisState.Prefix}check")
    val ofRows = options.structure match {
      case Structure.Hash => Seq(Seq("HSET", key, "field", "value"), Seq("HDEL", key, "field"))
      case Structure.Text => Seq(Seq("SET", key, "value"))
      case Structure.SortedSet => Seq(Seq("ZADD", key, "1", "member"))
      case Structure.Stream => Seq(Seq("XADD", key, "*", "field", "value"))
    }
    val expiring = options.ttlMs.map(ms => Seq("PEXPIRE", key, ms.toString)).toSeq
    val ofState = Seq(
      Seq("EVAL", "return 1", "1", own),
      Seq("EVALSHA", "0" * 40, "1", own),
      Seq("HGET", own, "field"),
      Seq("HSET", own, "field", "value"),
      Seq("HDEL", own, "field"),
      Seq("HKEYS", own),
      Seq("HINCRBY", own, "field", "1"),
      Seq("RPUSH", own, "value"),
      Seq("LRANGE", own, "0", "0"),
      Seq("SADD", own, "member"),
      Seq("SREM", own, "member"),
      Seq("SMEMBERS", own),
      Seq("DEL", own),
      Seq("UNLINK", own))
    ofRows ++ expiring ++ ofState
  }

  private def lacks(server: String, command: String, error: RedisError): StoreProblem =
    if (error.code != "NOPERM") throw error
    else {
      StoreProblem(
        RightsMissing,
        s"$server does not let this user call $command: ${error.getMessage}",
        "give the user the commands and keys that docs/guide/redis.md lists, with ACL SETUSER.")
    }
}
