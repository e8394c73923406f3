package org.apache.spark.sql.tailrace.metrics

import java.util.concurrent.atomic.{AtomicLongArray, AtomicReferenceArray}

/**
 * How often which duration was seen, in the buckets of an HdrHistogram of microseconds with two significant digits:
 * the error is below one percent from a microsecond to 19 hours.
 *
 * HdrHistogram's own recorders pay with atomic instructions for every value, which shows on the path of every row. Here
 * only one thread records and another reads, so that plain increments that become visible in time are enough.
 * Buckets are allocated in groups when they are first needed: most distributions need a few of the thirty.
 */
final class Counts {
  import Counts._

  private val groups = new AtomicReferenceArray[AtomicLongArray](Groups)

  def record(micros: Long, times: Int): Unit = {
    val index = indexOf(micros)
    var group = groups.getPlain(index >> GroupBits)
    if (group == null) {
      group = new AtomicLongArray(GroupSize)
      groups.setRelease(index >> GroupBits, group)
    }
    val place = index & (GroupSize - 1)
    group.setRelease(place, group.getPlain(place) + times)
  }

  /** What is not zero, as bucket and count. */
  def foreach(use: (Int, Long) => Unit): Unit = {
    var number = 0
    while (number < Groups) {
      val group = groups.getAcquire(number)
      var place = 0
      while (group != null && place < GroupSize) {
        val count = group.getAcquire(place)
        if (count != 0L) {
          use((number << GroupBits) + place, count)
        }
        place += 1
      }
      number += 1
    }
  }
}

object Counts {
  private val GroupBits = 7
  private val GroupSize = 1 << GroupBits
  private val LongestBits = 36
  private val Groups = LongestBits - GroupBits + 1
  private val Longest = (1L << LongestBits) - 1

  /** Of durations below 256 µs the duration itself; above, each doubling is cut into 128 parts. */
  private[metrics] def indexOf(micros: Long): Int = {
    // Clocks of different machines differ: a record may seem to arrive before it was sent.
    val value = math.min(math.max(micros, 0L), Longest)
    val halvings = 64 - (GroupBits + 1) - java.lang.Long.numberOfLeadingZeros(value | (2 * GroupSize - 1))
    (halvings << GroupBits) + (value >> halvings).toInt
  }

  /** The longest duration that falls into a bucket. */
  private[metrics] def highestOf(index: Int): Long = {
    val halvings = math.max(0, (index >> GroupBits) - 1)
    ((index - (halvings.toLong << GroupBits) + 1) << halvings) - 1
  }
}
