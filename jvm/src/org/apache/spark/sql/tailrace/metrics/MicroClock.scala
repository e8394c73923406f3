package org.apache.spark.sql.tailrace.metrics

import java.time.Instant
import java.util.concurrent.TimeUnit.{NANOSECONDS, SECONDS}

/**
 * The time of day in microseconds. It uses the JVM's timer, which is finer than a millisecond and allocates nothing,
 * and is synchronised with the system's clock once a second.
 */
object MicroClock {
  @volatile private var offset = measured()

  def now(): Long = System.nanoTime() / 1000 + offset

  private[metrics] def set(): Unit = offset = measured()

  private def measured(): Long = {
    val instant = Instant.now()
    SECONDS.toMicros(instant.getEpochSecond) + NANOSECONDS.toMicros(instant.getNano.toLong) - System.nanoTime() / 1000
  }
}
