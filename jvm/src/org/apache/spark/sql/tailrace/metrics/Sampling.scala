package org.apache.spark.sql.tailrace.metrics

/**
 * Chooses the rows that are timed. A look at the clock costs as much as some queries spend on a row, so that under load
 * only some rows get one: of every twenty milliseconds the first rows all, then ever fewer of the rest. A timed row
 * stands for those since the one before, which is its weight.
 *
 * A task that gets fewer than 48 rows in that time has every row timed. A stall is seen at any rate, because the rows behind
 * it wait too, and the first of them is timed.
 */
final class Sampling {
  import Sampling._

  private var tick = 0
  private var timed = 0
  private var stride = 1
  private var toSkip = 0
  private var skipped = 0
  private var random = System.nanoTime().toInt | 1

  /** How many rows the next row stands for; none if it is not timed. */
  def weightOfNext(): Int = {
    val now = Sampling.now
    if (now != tick) {
      tick = now
      timed = 0
      stride = 1
      toSkip = 0
      // The first row of a burst is not to stand for the end of the one before.
      skipped = 0
    }
    if (toSkip > 0) {
      toSkip -= 1
      skipped += 1
      0
    } else {
      timed += 1
      if (timed >= AllTimed && timed % TimedPerStride == 0) {
        stride = math.min(stride * 2, LongestStride)
      }
      // Not every so many-th: a query may treat those in its own way.
      toSkip = if (stride == 1) 0 else nextRandom() % (2 * stride - 1)
      val weight = skipped + 1
      skipped = 0
      weight
    }
  }

  private def nextRandom(): Int = {
    random ^= random << 13
    random ^= random >>> 17
    random ^= random << 5
    random & Int.MaxValue
  }
}

object Sampling {
  private val AllTimed = 48
  private val TimedPerStride = 8
  private val LongestStride = 512

  @volatile private var now = 0

  /** Called every twenty milliseconds. */
  private[metrics] def beginTick(): Unit = now += 1
}
