package org.apache.spark.sql.tailrace.sink.kafka

import java.util.concurrent.atomic.AtomicLong

import scala.collection.mutable

/**
 * In an executor: numbers the records that a task writes. Later records have higher numbers, over all attempts of the
 * task, and over epochs that overlap: after a failure their rows are replayed as those of one epoch.
 */
private[kafka] object WriteSequences {
  // An attempt writes fewer than 2^40 records in epochs that overlap.
  private val AttemptShift = 40

  private final class Shared {
    val number = new AtomicLong
    var writers = 0
  }

  private val open = mutable.HashMap.empty[(String, Int), Shared]

  /** For a writer, until it releases it. Where the writer of the next epoch is made before that, both share it. */
  def acquire(run: String, task: Int, attempt: Int): AtomicLong = synchronized {
    val shared = open.getOrElseUpdate((run, task), new Shared)
    shared.writers += 1
    shared.number.updateAndGet(last => math.max(last, attempt.toLong << AttemptShift))
    shared.number
  }

  def release(run: String, task: Int): Unit = synchronized {
    open.get((run, task)).foreach { shared =>
      shared.writers -= 1
      if (shared.writers == 0) {
        open.remove((run, task))
      }
    }
  }
}
