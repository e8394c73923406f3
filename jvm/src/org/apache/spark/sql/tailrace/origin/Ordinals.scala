package org.apache.spark.sql.tailrace.origin

/**
 * Numbers the results of a row. They follow each other without a gap, because real-time operators pass on all results
 * of a row before they take the next one.
 */
final class Ordinals(current: CurrentRow) {
  private var partition = CurrentRow.UnknownPartition
  private var offset = CurrentRow.Unknown
  private var path = 0L
  private var ordinal = 0

  /** The number of the current row. To be called once for each row. */
  def next(): Int = {
    if (current.partitionIndex == partition && current.offset == offset && current.path == path) {
      ordinal += 1
    } else {
      partition = current.partitionIndex
      offset = current.offset
      path = current.path
      ordinal = 0
    }
    ordinal
  }
}

object Ordinals {
  /**
   * The path of a row that goes into a shuffle, which mixes the rows of one record with others. It is a hash of the
   * ordinals at all shuffles so far; with 64 bits, the few rows of a record do not collide.
   */
  def extend(path: Long, ordinal: Int): Long = mix(path * 31 + ordinal + 1)

  // The finalizer of SplitMix64: a bijection in which each bit of the result depends on each bit of the argument.
  private def mix(seed: Long): Long = {
    val golden = seed + 0x9e3779b97f4a7c15L
    val first = (golden ^ (golden >>> 30)) * 0xbf58476d1ce4e5b9L
    val second = (first ^ (first >>> 27)) * 0x94d049bb133111ebL
    second ^ (second >>> 31)
  }
}
