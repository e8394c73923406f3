package org.apache.spark.sql.tailrace.sink.store

import java.util.concurrent.TimeUnit

import scala.collection.mutable

/** The connections of this JVM. Tasks hand theirs on to the tasks of the next epoch. */
private[sink] object Connections {
  private val IdleNanos = TimeUnit.MINUTES.toNanos(5)

  private final case class Idle(connection: Any, since: Long)
  private val idle = mutable.HashMap.empty[StoreServer[_], mutable.ArrayDeque[Idle]]

  def take[C](server: StoreServer[C]): C = {
    closeOld()
    synchronized(idle.get(server).flatMap(_.removeLastOption())).map(_.connection.asInstanceOf[C]).getOrElse(
      server.open())
  }

  def giveBack[C](server: StoreServer[C], connection: C): Unit = synchronized {
    idle.getOrElseUpdate(server, mutable.ArrayDeque.empty) += Idle(connection, System.nanoTime())
  }

  /** Closes those that nobody uses. */
  def close[C](server: StoreServer[C]): Unit =
    synchronized(idle.remove(server)).toSeq.flatten.foreach(close(server, _))

  private def closeOld(): Unit = {
    val now = System.nanoTime()
    val old = synchronized(idle.toSeq.flatMap { case (server, ofServer) =>
      ofServer.removeAll(now - _.since > IdleNanos).map(server -> _)
    })
    old.foreach { case (server, one) => close(server, one) }
  }

  private def close[C](server: StoreServer[C], one: Idle): Unit = server.close(one.connection.asInstanceOf[C])
}
