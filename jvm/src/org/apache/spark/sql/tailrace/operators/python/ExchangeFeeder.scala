package org.apache.spark.sql.tailrace.operators.python

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.tailrace.operators.input.FeederThread
import org.apache.spark.sql.tailrace.origin.CurrentRow

/**
 * Reads the operator's input and sends it to the worker.
 *
 * It is not built on `ThreadFedInput`: it sends a row itself when the worker is idle, which saves each row the hop
 * through a queue to another thread.
 */
private[python] final class ExchangeFeeder(
    input: Iterator[InternalRow],
    inputRow: CurrentRow,
    command: WorkerCommand,
    lease: WorkerLease,
    sender: BatchSender,
    backlog: Backlog,
    lifecycle: ExchangeLifecycle,
    channel: WorkerChannel,
    context: TaskContext)
    extends FeederThread(s"tailrace-python-feeder-${context.taskAttemptId()}", context) {

  override protected def feed(): Unit = {
    sender.sendCommand(command.encode(lease.worker, context.partitionId(), context))
    while (!lifecycle.isStopping && input.hasNext) {
      val row = input.next()
      // A function over an iterator may return before its input ends. The rest is read and dropped, as in micro-batch.
      if (lifecycle.acceptsInput) {
        backlog.add(new PendingRow(row.copy(), inputRow.keep()))
        while (sender.sendNext()) {}
        while (backlog.awaitRoom()) {
          sender.sendNext()
        }
      }
    }
    while (backlog.awaitAllSent()) {
      sender.sendNext()
    }
    if (lifecycle.acceptsInput && !lifecycle.isStopping) {
      sender.sendEnd()
    }
  }

  override protected def isStopping: Boolean = lifecycle.isStopping

  override protected def failed(reason: Throwable): Unit = {
    lifecycle.feederFailed(reason)
    channel.wakeReader()
  }
}
