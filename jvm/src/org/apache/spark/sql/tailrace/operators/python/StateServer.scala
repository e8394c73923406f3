package org.apache.spark.sql.tailrace.operators.python

import java.io.{DataOutputStream, IOException}
import java.nio.channels.ServerSocketChannel

import scala.annotation.nowarn
import scala.collection.mutable
import scala.util.control.NonFatal

import org.apache.arrow.vector.VectorSchemaRoot
import org.apache.arrow.vector.ipc.ArrowStreamWriter
import org.apache.logging.log4j.Level
import org.apache.logging.log4j.core.config.Configurator

import org.apache.spark.{TaskContext, TaskKilledException}
import org.apache.spark.api.python.ChainedPythonFunctions
import org.apache.spark.internal.LogEntry
import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.execution.python.streaming.{
  TransformWithStateInPySparkPythonBaseRunner, TransformWithStateInPySparkStateServer
}
import org.apache.spark.sql.execution.streaming.state.StateMessage.{
  HandleState, MapStateCall, StatefulProcessorCall, StateResponseWithLongTypeVal, TimerRequest
}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.tailrace.internals.{EngineClock, StateServerOutput}
import org.apache.spark.sql.tailrace.operators.input.UninterruptibleJoin
import org.apache.spark.sql.tailrace.operators.state.{EpochGivenUp, StateScans}

/**
 * Runs a stateful processor and serves its state to the worker, with Spark's own state server in a thread of its own.
 *
 * @param handle             the task's state
 * @param processorWatermark the watermark that the worker reads
 */
private[python] final class StatefulRunner(
    functions: Seq[(ChainedPythonFunctions, Long)],
    evalType: Int,
    argOffsets: Array[Int],
    schema: StructType,
    handle: TimerTrackingHandle,
    format: ArrowFormat,
    metrics: Map[String, SQLMetric],
    jobArtifacts: Option[String],
    keySchema: StructType,
    batchTimestampMs: Option[Long],
    watermark: Option[Long],
    processorWatermark: ProcessorWatermark)
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

  // Spark sets it for all other functions.
  override val simplifiedTraceback: Boolean = SQLConf.get.pysparkSimplifiedTraceback

  override def lease(context: TaskContext): WorkerLease = {
    serve(context)
    super.lease(context)
  }

  // An ArrowProtocol writes the rows.
  override protected def writeNextBatchToArrowStream(
      root: VectorSchemaRoot,
      writer: ArrowStreamWriter,
      dataOut: DataOutputStream,
      inputIterator: Iterator[Iterator[InternalRow]]): Boolean = false

  private def serve(context: TaskContext): Unit = {
    StatefulRunner.silenceMissingValueWarnings
    initStateServer()
    val server = new LiveWatermarkStateServer(
      stateServerSocket,
      handle,
      keySchema,
      sqlConf.arrowTransformWithStateInPySparkMaxStateRecordsPerBatch,
      batchTimestampMs,
      watermark,
      processorWatermark,
      new StateScans(context),
      mapIterators = new SingleEntryMap[Iterator[(Row, Row)]])
    val thread = new Thread(s"tailrace-state-server-${context.taskAttemptId()}") {
      override def run(): Unit = {
        TaskContext.setTaskContext(context)
        // A worker that ends early closes its socket. The WorkerExchange reports what went wrong.
        try server.run()
        catch { case NonFatal(failure) => logDebug("The state server has ended", failure) }
        finally TaskContext.unset()
      }
    }
    thread.setDaemon(true)
    def stop(): Unit = {
      closeServerSocketChannelSilently(stateServerSocket)
      thread.interrupt()
      UninterruptibleJoin(thread)
    }
    handle.stopReaders = () => stop()
    // Listeners run last in, first out: the server stops after the worker has ended and before the state is closed.
    // When a task fails, failure listeners run before all completion listeners; a request after that would log an
    // error.
    context.addTaskFailureListener((_: TaskContext, _: Throwable) => stop())
    context.addTaskCompletionListener[Unit](_ => stop())
    thread.start()
  }
}

/**
 * Spark's server takes its watermark once; this one looks it up whenever the worker asks. It also frees the scans of
 * map states, which Spark's server keeps for its lifetime.
 *
 * @param mapIterators the iterator over a map that the worker is reading, by its id
 */
private final class LiveWatermarkStateServer(
    socket: ServerSocketChannel,
    handle: TimerTrackingHandle,
    keySchema: StructType,
    maxRecordsPerBatch: Int,
    batchTimestampMs: Option[Long],
    watermark: Option[Long],
    processorWatermark: ProcessorWatermark,
    mapScans: StateScans,
    mapIterators: SingleEntryMap[Iterator[(Row, Row)]])
    extends TransformWithStateInPySparkStateServer(
      socket,
      handle,
      keySchema,
      maxRecordsPerBatch,
      batchTimestampMs,
      watermark,
      valueStateMapForTest = BatchedValueState.variables(keySchema),
      keyValueIteratorMapForTest = mapIterators,
      expiryTimerIterForTest = new SingleEntryMap[Iterator[(Row, Long)]]) {

  /** A worker that is killed breaks its connection. The exchange with the worker reports why, if there is a reason. */
  override protected def logError(entry: LogEntry, failure: Throwable): Unit = failure match {
    case _: IOException | _: TaskKilledException => logDebug(entry, failure)
    case _ => super.logError(entry, failure)
  }

  private[sql] override def handleStatefulProcessorCall(message: StatefulProcessorCall): Unit = {
    super.handleStatefulProcessorCall(message)
    if (message.hasSetHandleState && message.getSetHandleState.getState == HandleState.INITIALIZED) {
      // The worker goes on meanwhile, to the point where it needs its state.
      output.flush()
      try handle.begin()
      catch { case givenUp: EpochGivenUp => throw new InterruptedException(givenUp.getMessage) }
    }
  }

  private[sql] override def handleTimerRequest(message: TimerRequest): Unit = {
    val asksForWatermark = message.getTimerValueRequest.hasGetWatermark
    (if (asksForWatermark) processorWatermark.readByWorker() else None).fold(super.handleTimerRequest(message))(answer)
  }

  private[sql] override def handleMapStateRequest(message: MapStateCall): Unit =
    if (startsScan(message)) mapScans(super.handleMapStateRequest(message)) else super.handleMapStateRequest(message)

  private def startsScan(message: MapStateCall): Boolean =
    if (message.hasIterator) !mapIterators.contains(message.getIterator.getIteratorId)
    else message.hasExists || message.hasClear

  // Set when the worker has connected.
  private lazy val output = StateServerOutput.of(this)

  private def answer(watermarkMs: Long): Unit = {
    val bytes = StateResponseWithLongTypeVal.newBuilder().setStatusCode(0).setValue(watermarkMs).build().toByteArray
    output.writeInt(bytes.length)
    output.write(bytes)
  }
}

private object StatefulRunner {

  /** Spark's server warns about each read of a key without a value, which every new key is. */
  private lazy val silenceMissingValueWarnings: Unit =
    Configurator.setLevel(classOf[TransformWithStateInPySparkStateServer].getName, Level.ERROR)
}

/**
 * Holds only the latest iterator. Spark's server would keep each one for its lifetime, which is an epoch, but the
 * worker reads an iterator to its end before it starts another.
 */
@nowarn("cat=deprecation") // inheriting from HashMap is deprecated, but Spark's server requires that class
private final class SingleEntryMap[T] extends mutable.HashMap[String, T] {
  override def put(key: String, value: T): Option[T] = {
    clear()
    super.put(key, value)
  }
}
