package org.apache.spark.sql.tailrace.sink.postgresql

import java.sql.SQLException

import org.apache.spark.sql.tailrace.sink.store.StoreServer

import tailrace.TailraceException

/** What PostgreSQL's error codes (SQLSTATE) mean for a batch of rows. */
private[postgresql] object SqlErrors {
  val Unreachable = "TAILRACE_POSTGRESQL_UNREACHABLE"
  val Refused = "TAILRACE_POSTGRESQL_REFUSED"

  // No connection; not enough resources, a full disk included; shutting down or starting up; an error of its disk.
  private val TransientClasses = Set("08", "53", "57", "58")
  // Serialization failure, deadlock, lock not available, and a replica that has not been promoted yet.
  private val TransientStates = Set("40001", "40P01", "55P03", "25006")
  // A value that the column cannot hold, a violated constraint, a view's check option.
  private val RowClasses = Set("22", "23", "44")
  // A trigger refuses the row; the row or its key is too large.
  private val RowStates = Set("P0001", "54000")
  private val SameKeyTwice = "21000"

  def isTransient(failure: Throwable): Boolean = {
    val state = stateOf(failure)
    TransientClasses(state.take(2)) || TransientStates(state) ||
    (failure.isInstanceOf[SQLException] && failure.getCause.isInstanceOf[java.io.IOException])
  }

  def keepsConnection(failure: Throwable): Boolean = stateOf(failure).startsWith("40") || stateOf(failure) == "55P03"

  def isOfSomeRow(failure: Throwable): Boolean = {
    val state = stateOf(failure)
    RowClasses(state.take(2)) || RowStates(state) || state == SameKeyTwice
  }

  def unreachable(server: String, failure: Throwable, forMs: Long): TailraceException = StoreServer.withCause(
    new TailraceException(
      Unreachable,
      s"$server has taken no rows for ${forMs / 1000} s: ${StoreServer.messageOf(failure)}",
      "check that the server is up and accepts writes; the next run continues where this one ended. If the server " +
        "needs longer for a restart, raise the option retryTimeout."),
    failure)

  def refused(server: String, failure: Throwable): TailraceException = StoreServer.withCause(
    new TailraceException(
      Refused,
      s"$server refused the rows: ${StoreServer.messageOf(failure)}",
      "check the user, the database and its rights, and whether the table was changed, and start the query again; " +
        "no row is lost."),
    failure)

  private def stateOf(failure: Throwable): String = failure match {
    case ofServer: SQLException => Option(ofServer.getSQLState).getOrElse("")
    case _ => ""
  }
}
