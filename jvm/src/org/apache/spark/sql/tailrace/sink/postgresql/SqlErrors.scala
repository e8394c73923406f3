package org.apache.spark.sql.tailrace.sink.postgresql

import java.sql.SQLException

import org.apache.spark.sql.tailrace.origin.SourcePosition

import tailrace.TailraceException

/** What PostgreSQL's error codes (SQLSTATE) mean for a batch of rows. */
private[postgresql] object SqlErrors {
  val Unreachable = "TAILRACE_POSTGRESQL_UNREACHABLE"
  val Refused = "TAILRACE_POSTGRESQL_REFUSED"
  val RowRejected = "TAILRACE_ROW_REJECTED"

  // No connection; not enough resources, a full disk included; shutting down or starting up; an error of its disk.
  private val TransientClasses = Set("08", "53", "57", "58")
  // Serialization failure, deadlock, lock not available, and a replica that has not been promoted yet.
  private val TransientStates = Set("40001", "40P01", "55P03", "25006")
  // A value that the column cannot hold, a violated constraint, a view's check option.
  private val RowClasses = Set("22", "23", "44")
  // A trigger refuses the row; the row or its key is too large.
  private val RowStates = Set("P0001", "54000")
  private val SameKeyTwice = "21000"

  /** True if the same batch may succeed later, or over another connection. */
  def isTransient(failure: SQLException): Boolean = {
    val state = stateOf(failure)
    TransientClasses(state.take(2)) || TransientStates(state) || failure.getCause.isInstanceOf[java.io.IOException]
  }

  /** True if the connection is still good after a transient failure. */
  def keepsConnection(failure: SQLException): Boolean = stateOf(failure).startsWith("40") ||
    stateOf(failure) == "55P03"

  /** True if a part of the batch may be written without the rest. */
  def isOfSomeRow(failure: SQLException): Boolean = {
    val state = stateOf(failure)
    RowClasses(state.take(2)) || RowStates(state) || state == SameKeyTwice
  }

  def unreachable(server: ServerOptions, failure: Throwable, forMs: Long): TailraceException = withCause(
    new TailraceException(
      Unreachable,
      s"PostgreSQL at ${server.name} has taken no rows for ${forMs / 1000} s: ${messageOf(failure)}",
      "check that the server is up and accepts writes; the next run continues where this one ended. If the server " +
        "needs longer for a restart, raise the option retryTimeout."),
    failure)

  def refused(server: ServerOptions, failure: Throwable): TailraceException = withCause(
    new TailraceException(
      Refused,
      s"PostgreSQL at ${server.name} refused the rows: ${messageOf(failure)}",
      "check the user, the database and its rights, and whether the table was changed, and start the query again; " +
        "no row is lost."),
    failure)

  def rejected(position: SourcePosition, failure: SQLException): TailraceException = withCause(
    new TailraceException(
      RowRejected,
      s"PostgreSQL rejected a row made from ${SourcePosition.describe(Seq(position))}: ${messageOf(failure)}",
      "fix the query or the table, or skip such records: .option(\"onError\", \"dead-letter\")" +
        ".option(\"deadLetterTopic\", \"…\")."),
    failure)

  def messageOf(failure: Throwable): String = Option(failure.getMessage).getOrElse(failure.toString)

  private def stateOf(failure: SQLException): String = Option(failure.getSQLState).getOrElse("")

  private def withCause(error: TailraceException, cause: Throwable): TailraceException = {
    error.initCause(cause)
    error
  }
}
