package org.apache.spark.sql.tailrace.sink.postgresql

import java.sql.{Connection, SQLException}
import java.util.concurrent.TimeUnit

import scala.collection.mutable

import org.apache.spark.sql.tailrace.internals.PostgresqlDriver

/** The connections of this JVM. Tasks hand theirs on to the tasks of the next epoch. */
private[postgresql] object Connections {
  private val IdleNanos = TimeUnit.MINUTES.toNanos(5)

  private final case class Idle(connection: Connection, since: Long)
  private val idle = mutable.HashMap.empty[ServerOptions, mutable.ArrayDeque[Idle]]

  /** In autocommit mode: a statement is a transaction. */
  def take(server: ServerOptions): Connection = {
    closeOld()
    synchronized(idle.get(server).flatMap(_.removeLastOption())).map(_.connection).getOrElse(open(server))
  }

  def giveBack(server: ServerOptions, connection: Connection): Unit = synchronized {
    idle.getOrElseUpdate(server, mutable.ArrayDeque.empty) += Idle(connection, System.nanoTime())
  }

  def discard(connection: Connection): Unit =
    try connection.close()
    catch { case _: SQLException => }

  /** Closes those that nobody uses. */
  def close(server: ServerOptions): Unit = synchronized(idle.remove(server)).toSeq.flatten.foreach(one =>
    discard(one.connection))

  private def open(server: ServerOptions): Connection = {
    val connection = PostgresqlDriver.connect(server.url, server.properties)
    try {
      // Fencing relies on it: a statement that waited for a lock sees what has been committed meanwhile.
      connection.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED)
      // An acknowledged row must survive a crash of the server, because Spark does not replay a committed epoch.
      val statement = connection.createStatement()
      try statement.execute(
          "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'")
      finally statement.close()
      connection
    } catch {
      case failure: Throwable =>
        discard(connection)
        throw failure
    }
  }

  private def closeOld(): Unit = {
    val now = System.nanoTime()
    val old = synchronized(idle.values.flatMap(_.removeAll(now - _.since > IdleNanos)).toSeq)
    old.foreach(one => discard(one.connection))
  }
}
