package org.apache.spark.sql.tailrace.internals

import java.nio.file.Path

import org.apache.spark.sql.execution.datasources.v2.LowLatencyClock
import org.apache.spark.util.{Clock, SystemClock}

/** The clock that timers and epochs of the whole JVM go by. It is the system's, unless a test replaces it. */
object EngineClock {
  private val FileKey = "spark.tailrace.testing.clock"
  private var file: Option[Path] = None

  /** For Python workers: the file that holds the time, if it is a test's. */
  def workerConf: Map[String, String] = synchronized(file.map(FileKey -> _.toString).toMap)

  /** @param toldIn where the clock writes its time for Python workers */
  def replace(clock: Clock, toldIn: Path): Unit = synchronized {
    LowLatencyClock.setClock(clock)
    file = Some(toldIn)
  }

  def restore(): Unit = synchronized {
    LowLatencyClock.setClock(new SystemClock)
    file = None
  }
}
