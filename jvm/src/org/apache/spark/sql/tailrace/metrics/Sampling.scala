package org.apache.spark.sql.tailrace.metrics

/**
 * Chooses the rows that are timed. Reading the clock costs as much as some queries spend on a row, so under load only
 * some rows are timed: in every twenty milliseconds all of the first rows, then fewer and fewer of the rest. The weight
 * of a timed row is the number of rows since the previous timed one.
 *
 * If a task gets fewer than 48 rows in that time, every row is timed. A stall is seen at any rate, because the rows
 * behind it wait too, and the first of them is timed.
 */
final class Sampling {
  import Sampling._

  private var tick = 0
  private var timed = 0
  private var stride = 1
  private var toSkip = 0
  private var skipped = 0
  private var random = System.nanoTime().toInt | 1

  /** The weight of the next row; 0 if it is not timed. */
  def weightOfNext(): Int = {
    val now = Sampling.now
    if (now != tick) {
      tick = now
      timed = 0
      stride = 1
      toSkip = 0
      // The first row of a burst must not count for the end of the previous one.
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
      // At random, not every n-th row: a query may treat every n-th row differently.
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
