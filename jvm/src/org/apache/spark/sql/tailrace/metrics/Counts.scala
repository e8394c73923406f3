package org.apache.spark.sql.tailrace.metrics

import java.util.concurrent.atomic.{AtomicLongArray, AtomicReferenceArray}

/**
 * How often each duration was seen, in [[Buckets]]: the error is below one percent from a microsecond to 19 hours.
 *
 * HdrHistogram's own recorders use atomic instructions for every value, which every row would pay for. Here only one
 * thread records and another reads, so plain increments that become visible eventually are enough. Buckets are
 * allocated in groups when they are first needed: most distributions need only a few of the thirty.
 */
final class Counts {
  import Buckets._

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

  /** The non-zero counts, as bucket and count. */
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
