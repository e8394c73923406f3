package org.apache.spark.sql.tailrace.operators.python

import java.io.{DataInputStream, DataOutputStream}

import org.apache.spark.api.python.{PythonWorkerUtils, SpecialLengths}
import org.apache.spark.api.python.PythonFunction.PythonAccumulator
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.metric.SQLMetric

/**
 * What a worker sent: results, or with none of them the notice that it has taken one batch.
 *
 * @param failure the traceback that takes the place of a row's result, in a worker that continues after bad rows
 */
private[python] final class Answer(
    val count: Int,
    val rows: Iterator[InternalRow],
    val failure: Option[String] = None)

private[python] object Answer {
  val Taken = new Answer(0, Iterator.empty)
}

/** The traceback of an exception in the user's function, and the row of the batch that caused it, if known. */
private[python] final class PythonFailure(val traceback: String, val row: Option[Int]) extends Exception(traceback)

/** How rows are encoded for one kind of worker and how its answers are decoded. */
private[python] abstract class WorkerProtocol(accumulator: PythonAccumulator, metrics: Map[String, SQLMetric]) {

  /** True if each batch is answered by its results; otherwise the worker reports when it has taken a batch. */
  def answersEachBatch: Boolean

  /** Writes what precedes the first batch. */
  def start(out: DataOutputStream): Unit

  def write(rows: Iterator[InternalRow], count: Int, out: DataOutputStream): Unit

  /** Writes what follows the last batch. */
  def end(out: DataOutputStream): Unit

  /** Reads the next answer; null if the worker has ended in order. */
  def read(in: DataInputStream): Answer

  /** Frees buffers; nothing may be read or written afterwards. */
  def free(): Unit = ()

  /** True if the worker has ended in order and can serve another task. */
  final def workerIsReusable: Boolean = reusable
  private var reusable = false
  private var failedRow: Option[Int] = None

  /** Handles a message that is not an answer. False if it was the end. */
  protected final def control(code: Int, in: DataInputStream): Boolean = code match {
    case SpecialLengths.TIMING_DATA =>
      val (boot, init, finish) = (in.readLong(), in.readLong(), in.readLong())
      metrics.get("pythonInitTime").foreach(_.add(init - boot))
      metrics.get("pythonTotalTime").foreach(_.add(finish - boot))
      metrics.get("pythonProcessingTime").foreach(_.add(in.readLong()))
      in.skipNBytes(2 * java.lang.Long.BYTES) // bytes spilled by shuffles in Python; no operator here shuffles
      true
    case WorkerProtocol.AtRow =>
      failedRow = Some(in.readInt())
      true
    case SpecialLengths.PYTHON_EXCEPTION_THROWN => throw new PythonFailure(PythonWorkerUtils.readUTF(in), failedRow)
    case SpecialLengths.END_OF_DATA_SECTION =>
      PythonWorkerUtils.receiveAccumulatorUpdates(Option(accumulator), in)
      reusable = in.readInt() == SpecialLengths.END_OF_STREAM
      false
    case other => throw new IllegalStateException(s"a Python worker sent $other, which is not in its protocol")
  }

  /** Reads what follows [[WorkerProtocol.RowFailed]]. */
  protected final def failedRow(in: DataInputStream): Answer = {
    val code = in.readInt()
    if (code != SpecialLengths.PYTHON_EXCEPTION_THROWN) {
      throw new IllegalStateException(s"a Python worker sent $code instead of a traceback")
    }
    new Answer(1, Iterator.empty, Some(PythonWorkerUtils.readUTF(in)))
  }

  protected final def count(metric: String, amount: Long): Unit = metrics.get(metric).foreach(_.add(amount))
}

private[python] object WorkerProtocol {

  // The codes that `tailrace_worker` adds to PySpark's protocol.
  val BatchTaken: Int = -100
  val AtRow: Int = -101
  val RowFailed: Int = -102

  /** In the configuration of a worker command: the worker answers a row that fails by its traceback, and continues. */
  val SkipsBadRows: Map[String, String] = Map("tailrace.skipsBadRows" -> "true")
}
