package org.apache.spark.sql.tailrace.sink.store

import java.util.concurrent.TimeUnit

import org.apache.spark.internal.Logging

/**
 * Talks to a server over a connection that is kept, and tries again if the server is away for a while. What is run must
 * be safe to repeat: after a lost connection nobody knows whether the server has done it.
 */
private[sink] final class Retries[C](server: StoreServer[C], limitMs: Long, sleep: Long => Unit) extends Logging {
  import Retries._

  private var connection: Option[C] = None
  @volatile private var isAborted = false

  def run[T](work: C => T): T = {
    var failedSince = 0L
    var pauseMs = FirstPauseMs
    var result = Option.empty[T]
    while (result.isEmpty) {
      try result = Some(work(connected()))
      catch {
        case failure: Exception if server.isTransient(failure) && !isAborted =>
          val now = System.nanoTime()
          if (failedSince == 0L) {
            failedSince = now
            logWarning(s"${server.name}: ${failure.getMessage} Trying again.")
          }
          val forMs = TimeUnit.NANOSECONDS.toMillis(now - failedSince)
          if (!server.keepsConnection(failure)) {
            disconnect()
          }
          if (forMs > limitMs) {
            throw server.unreachable(failure, forMs)
          }
          sleep(pauseMs)
          pauseMs = math.min(2 * pauseMs, LongestPauseMs)
      }
    }
    result.get
  }

  /** Keeps the connection for others. Not to be called while work is under way. */
  def release(): Unit = {
    connection.foreach(Connections.giveBack(server, _))
    connection = None
  }

  def disconnect(): Unit = {
    connection.foreach(server.close)
    connection = None
  }

  /** From another thread: ends what is under way. */
  def abort(): Unit = {
    isAborted = true
    connection.foreach(server.abort)
  }

  private def connected(): C = connection.getOrElse {
    val taken = Connections.take(server)
    connection = Some(taken)
    taken
  }
}

private[sink] object Retries {
  private val FirstPauseMs = 50L
  private val LongestPauseMs = 1000L

  /** For the driver's work, in transactions that are safe to repeat. */
  def inTransaction[C, T](server: StoreServer[C], limitMs: Long)(work: C => T): T = {
    val retries = new Retries[C](server, limitMs, Thread.sleep)
    try {
      val result = retries.run { connection =>
        try server.transaction(connection)(work)
        catch {
          case failure: Throwable =>
            // What was begun is rolled back.
            retries.disconnect()
            throw failure
        }
      }
      retries.release()
      result
    } catch {
      case failure: Exception if server.isOwnFailure(failure) => throw server.refused(failure)
    }
  }
}
