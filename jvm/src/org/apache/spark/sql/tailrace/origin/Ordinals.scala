package org.apache.spark.sql.tailrace.origin

/**
 * Numbers the rows that one row was made into. They come one after the other, since real-time operators pass all
 * results of a row on before they take the next one.
 */
final class Ordinals(current: CurrentRow) {
  private var place = CurrentRow.UnknownPlace
  private var offset = CurrentRow.Unknown
  private var path = 0L
  private var ordinal = 0

  /** Of the row at hand; to be asked once for each row. */
  def next(): Int = {
    if (current.place == place && current.offset == offset && current.path == path) {
      ordinal += 1
    } else {
      place = current.place
      offset = current.offset
      path = current.path
      ordinal = 0
    }
    ordinal
  }
}

object Ordinals {
  /**
   * The path of a row that goes into a shuffle, behind which rows of the same record are among others. It stands for the
   * ordinals at all shuffles so far, as a hash of 64 bits: two of the few rows of one record are never told apart wrongly.
   */
  def extend(path: Long, ordinal: Int): Long = mix(path * 31 + ordinal + 1)

  // The finalizer of SplitMix64: one to one, and every bit of the result depends on every bit of the argument.
  private def mix(seed: Long): Long = {
    val golden = seed + 0x9e3779b97f4a7c15L
    val first = (golden ^ (golden >>> 30)) * 0xbf58476d1ce4e5b9L
    val second = (first ^ (first >>> 27)) * 0x94d049bb133111ebL
    second ^ (second >>> 31)
  }
}
