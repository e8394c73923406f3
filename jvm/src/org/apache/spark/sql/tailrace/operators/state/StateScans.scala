package org.apache.spark.sql.tailrace.operators.state

import org.apache.spark.{TaskContext, TaskContextImpl}

/**
 * Frees the scans of a state store when they are done. RocksDB's store adds a completion listener to the task for each
 * scan, and the listener holds the scan's native iterator until the task ends. In Real-Time Mode that is the end of the
 * epoch, and there is a scan for each row. So a scan gets a task context of its own, which ends before the next scan.
 *
 * One thread at a time may use it. To be created after the store: what is still open when the task ends is freed before
 * the store is closed.
 */
final class StateScans(task: TaskContext) {
  @volatile private var open: TaskContextImpl = _

  task.addTaskCompletionListener[Unit](_ => end())

  /** Runs `body`. The scans that it starts can be read until the next call. */
  def apply[T](body: => T): T = {
    end()
    open = TaskPart.of(task)
    TaskPart.in(open)(body)
  }

  /** Frees the last scan. */
  def end(): Unit = {
    val ended = open
    open = null
    if (ended != null) {
      ended.markTaskCompleted(None)
    }
  }
}
