package org.apache.spark.sql.tailrace.sink

/**
 * Counts the rows of an epoch that were not simply written.
 *
 * @param deduplicated replayed rows that were dropped because they are in the output already
 * @param corrected    replayed rows that were written although the output holds a version of them
 * @param madeByTime   rows of timers and closed sessions
 */
final case class SinkCounts(deduplicated: Long, corrected: Long, madeByTime: Long) {
  def +(other: SinkCounts): SinkCounts =
    SinkCounts(deduplicated + other.deduplicated, corrected + other.corrected, madeByTime + other.madeByTime)

  def byName: Map[String, String] = Map(
    "deduplicated" -> deduplicated.toString,
    "corrected" -> corrected.toString,
    "madeByTime" -> madeByTime.toString)
}

object SinkCounts {
  val none: SinkCounts = SinkCounts(0, 0, 0)
}
