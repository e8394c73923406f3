package org.apache.spark.sql.tailrace.operators.python

import java.io.DataOutputStream
import java.nio.channels.ServerSocketChannel

import scala.annotation.nowarn
import scala.collection.mutable
import scala.util.control.NonFatal

import org.apache.arrow.vector.VectorSchemaRoot
import org.apache.arrow.vector.ipc.ArrowStreamWriter
import org.apache.logging.log4j.Level
import org.apache.logging.log4j.core.config.Configurator

import org.apache.spark.TaskContext
import org.apache.spark.api.python.ChainedPythonFunctions
import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.execution.python.streaming.{TransformWithStateInPySparkPythonBaseRunner, TransformWithStateInPySparkStateServer}
import org.apache.spark.sql.execution.streaming.state.StateMessage.{StateResponseWithLongTypeVal, TimerRequest}
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.tailrace.internals.{EngineClock, StateServerOutput}

/**
 * One who knows a processor, and serves its worker the state of the task: Spark's own server, in a thread of its own.
 *
 * @param handle the task's state
 * @param time   what the worker is told of it
 */
private[python] final class StatefulRunner(
    functions: Seq[(ChainedPythonFunctions, Long)],
    evalType: Int,
    argOffsets: Array[Int],
    schema: StructType,
    handle: WatchedHandle,
    format: ArrowFormat,
    metrics: Map[String, SQLMetric],
    jobArtifacts: Option[String],
    keySchema: StructType,
    batchTimestampMs: Option[Long],
    watermark: Option[Long],
    time: ProcessorTime)
    extends TransformWithStateInPySparkPythonBaseRunner[Iterator[InternalRow]](
      functions,
      evalType,
      Array(argOffsets),
      schema,
      handle,
      format.timeZone,
      format.runnerConf ++ EngineClock.workerConf,
      metrics,
      jobArtifacts,
      keySchema,
      batchTimestampMs,
      watermark)
    with RealTimeRunner[Iterator[InternalRow], org.apache.spark.sql.vectorized.ColumnarBatch] {

  override def hire(context: TaskContext): WorkerLease = {
    serve(context)
    super.hire(context)
  }

  // The rows are written by a wire.
  override protected def writeNextBatchToArrowStream(
      root: VectorSchemaRoot,
      writer: ArrowStreamWriter,
      dataOut: DataOutputStream,
      inputIterator: Iterator[Iterator[InternalRow]]): Boolean = false

  private def serve(context: TaskContext): Unit = {
    StatefulRunner.quiet
    initStateServer()
    val server = new TimelyStateServer(
      stateServerSocket,
      handle,
      keySchema,
      sqlConf.arrowTransformWithStateInPySparkMaxStateRecordsPerBatch,
      batchTimestampMs,
      watermark,
      time)
    val thread = new Thread(s"tailrace-state-server-${context.taskAttemptId()}") {
      override def run(): Unit = {
        TaskContext.setTaskContext(context)
        // A worker that ends early takes its socket along; what went wrong is the conversation's to tell.
        try server.run()
        catch { case NonFatal(failure) => logDebug("The state server has ended", failure) }
        finally TaskContext.unset()
      }
    }
    thread.setDaemon(true)
    def stop(): Unit = {
      closeServerSocketChannelSilently(stateServerSocket)
      thread.interrupt()
      StatefulRunner.join(thread)
    }
    handle.stopReaders = () => stop()
    // Listeners run last in, first out: after the worker has ended, and before the state is closed. If the task fails or
    // is killed that is before any of the other kind; a request that came later would be answered with an error in the log.
    context.addTaskFailureListener((_: TaskContext, _: Throwable) => stop())
    context.addTaskCompletionListener[Unit](_ => stop())
    thread.start()
  }
}

/** Spark's server is given a watermark once; this one asks for it whenever the worker does. */
private final class TimelyStateServer(
    socket: ServerSocketChannel,
    handle: WatchedHandle,
    keySchema: StructType,
    maxRecordsPerBatch: Int,
    batchTimestampMs: Option[Long],
    watermark: Option[Long],
    time: ProcessorTime)
    extends TransformWithStateInPySparkStateServer(
      socket,
      handle,
      keySchema,
      maxRecordsPerBatch,
      batchTimestampMs,
      watermark,
      valueStateMapForTest = BatchedValueState.variables(keySchema),
      keyValueIteratorMapForTest = new OneAtATime[Iterator[(Row, Row)]],
      expiryTimerIterForTest = new OneAtATime[Iterator[(Row, Long)]]) {

  private[sql] override def handleTimerRequest(message: TimerRequest): Unit = {
    val asksForWatermark = message.getTimerValueRequest.hasGetWatermark
    (if (asksForWatermark) time.tell() else None).fold(super.handleTimerRequest(message))(answer)
  }

  // Set when the worker has connected.
  private lazy val output = StateServerOutput.of(this)

  private def answer(watermarkMs: Long): Unit = {
    val bytes = StateResponseWithLongTypeVal.newBuilder().setStatusCode(0).setValue(watermarkMs).build().toByteArray
    output.writeInt(bytes.length)
    output.write(bytes)
  }
}

private object StatefulRunner {

  /** Spark's server warns of each key that has no value yet: here that is each new key, each time. */
  private lazy val quiet: Unit =
    Configurator.setLevel(classOf[TransformWithStateInPySparkStateServer].getName, Level.ERROR)

  private def join(thread: Thread): Unit = {
    var interrupted = Thread.interrupted()
    while (thread.isAlive && (thread ne Thread.currentThread())) {
      try thread.join()
      catch { case _: InterruptedException => interrupted = true }
    }
    if (interrupted) {
      Thread.currentThread().interrupt()
    }
  }
}

/**
 * Iterators that Spark's server would remember for as long as it lives, which is an epoch. The worker reads each to its
 * end before it begins another.
 */
@nowarn("cat=deprecation") // of inheriting from this class, which Spark's server asks for
private final class OneAtATime[T] extends mutable.HashMap[String, T] {
  override def put(key: String, value: T): Option[T] = {
    clear()
    super.put(key, value)
  }
}
