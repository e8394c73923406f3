package org.apache.spark.sql.tailrace.operators.python

import java.io.{DataInputStream, DataOutputStream}
import java.util.concurrent.ConcurrentLinkedQueue

import org.apache.spark.api.python.{PythonWorkerUtils, SpecialLengths}
import org.apache.spark.api.python.PythonFunction.PythonAccumulator
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.metric.SQLMetric

/**
 * Rows and results as pickled lists, each preceded by its length.
 *
 * @param pickle  encodes a batch of rows
 * @param results decodes an answer; None if the worker has no results and only acknowledges each batch
 */
private[python] final class PickledProtocol(
    pickle: (Iterator[InternalRow], Int) => Array[Byte],
    results: Option[Array[Byte] => Seq[InternalRow]],
    accumulator: PythonAccumulator,
    metrics: Map[String, SQLMetric])
    extends WorkerProtocol(accumulator, metrics) {

  override def answersEachBatch: Boolean = true

  // Of the batches that are not acknowledged yet.
  private val sizes = new ConcurrentLinkedQueue[Int]

  override def start(out: DataOutputStream): Unit = ()

  override def write(rows: Iterator[InternalRow], count: Int, out: DataOutputStream): Unit = {
    val bytes = pickle(rows, count)
    if (results.isEmpty) {
      sizes.add(count)
    }
    PythonWorkerUtils.writeBytes(bytes, out)
    this.count("pythonDataSent", bytes.length)
  }

  override def end(out: DataOutputStream): Unit = {
    out.writeInt(SpecialLengths.END_OF_DATA_SECTION)
    out.writeInt(SpecialLengths.END_OF_STREAM)
  }

  override def read(in: DataInputStream): Answer = {
    var answer: Answer = null
    var more = true
    while (answer == null && more) {
      val length = in.readInt()
      if (length == WorkerProtocol.RowFailed) {
        answer = failedRow(in)
      } else if (length < 0) {
        more = control(length, in)
      } else {
        val bytes = PythonWorkerUtils.readBytes(length, in)
        count("pythonDataReceived", length)
        val rows = results.fold(Seq.fill(sizes.poll())(InternalRow.empty))(unpickle => unpickle(bytes))
        count("pythonNumRowsReceived", rows.size)
        answer = new Answer(rows.size, rows.iterator)
      }
    }
    answer
  }
}
