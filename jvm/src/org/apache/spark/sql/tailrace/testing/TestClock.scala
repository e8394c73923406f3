package org.apache.spark.sql.tailrace.testing

import java.nio.file.{Files, Path}
import java.nio.file.StandardCopyOption.ATOMIC_MOVE

import org.apache.spark.sql.tailrace.internals.EngineClock
import org.apache.spark.util.{ManualClock, SystemClock}

/**
 * A clock that stands still unless a test moves it. It knows whether the stream's thread waits for it.
 *
 * @param file where Python workers read the time
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

  /** True if everything that was due is done. */
  def isWaitedFor: Boolean = awaited > getTimeMillis()

  // A deserialized task gets the clock itself, not a copy.
  private def writeReplace(): AnyRef = new TestClock.Reference
}

object TestClock {
  private var current: Option[TestClock] = None

  /** Makes the timers and epochs of the whole JVM follow a new clock; null if they already follow another test's. */
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
