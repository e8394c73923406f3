package org.apache.spark.sql.tailrace.sink.replay

import scala.collection.mutable

/** Driver-side: a sink's state of each run that writes to it. Spark makes a new sink for each epoch. */
private[sink] abstract class SinkRunRegistry[R](close: R => Unit) {
  private val runs = mutable.HashMap.empty[String, R]

  def getOrStart(run: String)(start: => R): R =
    synchronized(runs.get(run)).getOrElse {
      val started = start
      synchronized(runs.put(run, started))
      started
    }

  def of(run: String): Option[R] = synchronized(runs.get(run))

  def end(run: String): Unit = synchronized(runs.remove(run)).foreach(close)
}
