package org.apache.spark.sql.tailrace.operators.python

import java.util.concurrent.ConcurrentLinkedQueue

/**
 * The rows that were sent to the worker and still wait for their results, in the order of both. Senders add batches
 * from two threads; one thread takes rows.
 *
 * @param onBatchTaken called with each batch when its last row has been taken
 */
private[python] final class SentRows(onBatchTaken: Batch => Unit) {
  private val batches = new ConcurrentLinkedQueue[Batch]
  private var batch: Batch = _
  private var index = 0

  def add(sent: Batch): Unit = batches.add(sent)

  /** The row that the next result belongs to. */
  def next(): PendingRow = {
    if (batch == null || index == batch.entries.length) {
      batch = batches.poll()
      index = 0
      if (batch == null) {
        throw new IllegalStateException("the Python function gave more results than it got rows")
      }
    }
    val entry = batch.entries(index)
    index += 1
    if (index == batch.entries.length) {
      onBatchTaken(batch)
    }
    entry
  }
}
