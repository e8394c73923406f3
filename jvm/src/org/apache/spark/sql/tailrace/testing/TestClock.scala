package org.apache.spark.sql.tailrace.testing

import java.nio.file.{Files, Path}
import java.nio.file.StandardCopyOption.ATOMIC_MOVE

import org.apache.spark.sql.tailrace.internals.EngineClock
import org.apache.spark.util.{ManualClock, SystemClock}

/**
 * Time stands still unless a test moves it. Knows whether the stream's thread waits for it to move.
 *
 * @param file where Python workers read it
 */
final class TestClock(startMs: Long, file: Path) extends ManualClock(startMs) with Serializable {
  @volatile private var awaited = Long.MinValue
  tell()

  override def advance(timeToAdd: Long): Unit = synchronized {
    super.advance(timeToAdd)
    tell()
  }

  private def tell(): Unit = {
    val draft = file.resolveSibling(s"${file.getFileName}.draft")
    Files.writeString(draft, getTimeMillis().toString)
    Files.move(draft, file, ATOMIC_MOVE)
  }

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
  def install(startMs: Long, file: String): TestClock = synchronized {
    if (current.isDefined) null
    else {
      val clock = new TestClock(startMs, Path.of(file))
      EngineClock.replace(clock, Path.of(file))
      current = Some(clock)
      clock
    }
  }

  private final class Reference extends Serializable {
    private def readResolve(): AnyRef = TestClock.synchronized(current.getOrElse(new SystemClock))
  }

  def uninstall(): Unit = synchronized {
    current = None
    EngineClock.restore()
  }
}
