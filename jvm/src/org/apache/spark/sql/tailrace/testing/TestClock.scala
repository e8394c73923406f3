package org.apache.spark.sql.tailrace.testing

import org.apache.spark.sql.execution.datasources.v2.LowLatencyClock
import org.apache.spark.util.{ManualClock, SystemClock}

/** Time stands still unless a test moves it. Knows whether the stream's thread waits for it to move. */
final class TestClock(startMs: Long) extends ManualClock(startMs) with Serializable {
  @volatile private var awaited = Long.MinValue

  override def waitTillTime(targetTime: Long): Long = {
    awaited = targetTime
    super.waitTillTime(targetTime)
  }

  /** Everything is done that was due. */
  def isWaitedFor: Boolean = awaited > getTimeMillis()

  // A task's copy is the clock itself.
  private def writeReplace(): AnyRef = new TestClock.Reference
}

object TestClock {
  private var current: Option[TestClock] = None

  /** Timers and epochs of the whole JVM go by it; null if they go by another test's already. */
  def install(startMs: Long): TestClock = synchronized {
    if (current.isDefined) null else {
      val clock = new TestClock(startMs)
      LowLatencyClock.setClock(clock)
      current = Some(clock)
      clock
    }
  }

  private final class Reference extends Serializable {
    private def readResolve(): AnyRef = TestClock.synchronized(current.getOrElse(new SystemClock))
  }

  def uninstall(): Unit = synchronized {
    current = None
    LowLatencyClock.setClock(new SystemClock)
  }
}
