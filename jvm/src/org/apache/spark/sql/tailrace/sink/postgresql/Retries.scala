package org.apache.spark.sql.tailrace.sink.postgresql

import java.sql.{Connection, SQLException}
import java.util.concurrent.TimeUnit

import org.apache.spark.internal.Logging

/**
 * Runs statements over a connection that is kept, and runs them again if the server is away for a while. What is run
 * must be safe to repeat: after a lost connection nobody knows whether the statement was committed.
 */
private[postgresql] final class Retries(server: ServerOptions, limitMs: Long, sleep: Long => Unit) extends Logging {
  import Retries._

  private var connection: Connection = _
  @volatile private var isAborted = false

  def run[T](work: Connection => T): T = {
    var failedSince = 0L
    var pauseMs = FirstPauseMs
    var result = Option.empty[T]
    while (result.isEmpty) {
      try result = Some(work(connected()))
      catch {
        case failure: SQLException if SqlErrors.isTransient(failure) && !isAborted =>
          val now = System.nanoTime()
          if (failedSince == 0L) {
            failedSince = now
            logWarning(s"PostgreSQL at ${server.name}: ${failure.getMessage} Trying again.")
          }
          val forMs = TimeUnit.NANOSECONDS.toMillis(now - failedSince)
          if (!SqlErrors.keepsConnection(failure)) {
            disconnect()
          }
          if (forMs > limitMs) {
            throw SqlErrors.unreachable(server, failure, forMs)
          }
          sleep(pauseMs)
          pauseMs = math.min(2 * pauseMs, LongestPauseMs)
      }
    }
    result.get
  }

  /** Keeps the connection for others. Not to be called while work is under way. */
  def release(): Unit = if (connection != null) {
    Connections.giveBack(server, connection)
    connection = null
  }

  def disconnect(): Unit = if (connection != null) {
    Connections.discard(connection)
    connection = null
  }

  /** From another thread: ends what is under way. */
  def abort(): Unit = {
    isAborted = true
    Option(connection).foreach(_.abort((task: Runnable) => task.run()))
  }

  private def connected(): Connection = {
    if (connection == null) {
      connection = Connections.take(server)
    }
    connection
  }
}

private[postgresql] object Retries {
  private val FirstPauseMs = 50L
  private val LongestPauseMs = 1000L

  /** For the driver's work, in transactions that are safe to repeat. */
  def inTransaction[T](options: PostgresqlOptions)(work: Connection => T): T = {
    val retries = new Retries(options.server, options.retryMs, Thread.sleep)
    try {
      val result = retries.run { connection =>
        try {
          connection.setAutoCommit(false)
          val result = work(connection)
          connection.commit()
          connection.setAutoCommit(true)
          result
        } catch {
          case failure: Throwable =>
            // Rolls back. To switch autocommit on would commit.
            retries.disconnect()
            throw failure
        }
      }
      retries.release()
      result
    } catch {
      case failure: SQLException => throw SqlErrors.refused(options.server, failure)
    }
  }
}
