package org.apache.spark.sql.tailrace.metrics

/**
 * The buckets of an HdrHistogram of microseconds with two significant digits, up to 19 hours. Python has the same in
 * `tailrace/monitor/histogram.py`; the test vector in tests/buckets.json checks both.
 */
private[metrics] object Buckets {
  val GroupBits = 7
  val GroupSize: Int = 1 << GroupBits
  private val LongestBits = 36
  val Groups: Int = LongestBits - GroupBits + 1
  private val Longest = (1L << LongestBits) - 1

  /** Below 256 µs a bucket holds one duration; above, each doubling is divided into 128 buckets. */
  def indexOf(micros: Long): Int = {
    // Clocks of different machines differ: a record may seem to arrive before it was sent.
    val value = math.min(math.max(micros, 0L), Longest)
    val halvings = 64 - (GroupBits + 1) - java.lang.Long.numberOfLeadingZeros(value | (2 * GroupSize - 1))
    (halvings << GroupBits) + (value >> halvings).toInt
  }

  /** The longest duration that falls into a bucket. */
  def highestOf(index: Int): Long = {
    val halvings = math.max(0, (index >> GroupBits) - 1)
    ((index - (halvings.toLong << GroupBits) + 1) << halvings) - 1
  }
}
