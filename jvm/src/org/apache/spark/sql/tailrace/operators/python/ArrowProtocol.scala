package org.apache.spark.sql.tailrace.operators.python

import java.io.{DataInputStream, DataOutputStream}

import scala.jdk.CollectionConverters._

import org.apache.arrow.vector.{VectorSchemaRoot, VectorUnloader}
import org.apache.arrow.vector.ipc.{ArrowStreamReader, ArrowStreamWriter, WriteChannel}
import org.apache.arrow.vector.ipc.message.{IpcOption, MessageSerializer}

import org.apache.spark.api.python.{ChainedPythonFunctions, SpecialLengths}
import org.apache.spark.api.python.PythonFunction.PythonAccumulator
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.arrow.{ArrowCompressionUtils, ArrowWriter}
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.execution.python.{ArrowPythonRunner, ArrowPythonWithNamedArgumentRunner}
import org.apache.spark.sql.execution.python.EvalPythonExec.ArgumentMetadata
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.ArrowUtils
import org.apache.spark.sql.vectorized.{ArrowColumnVector, ColumnarBatch, ColumnVector}

/**
 * Rows and results as Arrow batches, in one Arrow stream per direction.
 *
 * @param arguments   projects a row to the columns of `schema`, which the functions take
 * @param results     the rows of a batch of results
 * @param answersEachBatch see [[WorkerProtocol]]
 */
private[python] final class ArrowProtocol(
    schema: StructType,
    format: ArrowFormat,
    override val answersEachBatch: Boolean,
    arguments: InternalRow => InternalRow,
    results: ColumnarBatch => Iterator[InternalRow],
    accumulator: PythonAccumulator,
    metrics: Map[String, SQLMetric])
    extends WorkerProtocol(accumulator, metrics) {
  private val allocator = ArrowUtils.rootAllocator.newChildAllocator("tailrace python operator", 0, Long.MaxValue)
  private val outbound =
    VectorSchemaRoot.create(ArrowUtils.toArrowSchema(schema, format.timeZone, format.largeVarTypes), allocator)
  private val rowWriter = ArrowWriter.create(outbound)
  private val unloader = {
    val codec = ArrowCompressionUtils
      .createCompressionCodec(SQLConf.get.arrowCompressionCodec, SQLConf.get.arrowZstdCompressionLevel)
    new VectorUnloader(outbound, true, codec, true)
  }
  private var reader: ArrowStreamReader = _
  private var inbound: ColumnarBatch = _
  private var received = 0L

  override def start(out: DataOutputStream): Unit =
    new ArrowStreamWriter(outbound, null, UninterruptibleChannel.to(out)).start()

  override def write(rows: Iterator[InternalRow], count: Int, out: DataOutputStream): Unit = {
    val before = out.size()
    rows.foreach(row => rowWriter.write(arguments(row)))
    rowWriter.finish()
    val batch = unloader.getRecordBatch()
    try MessageSerializer.serialize(new WriteChannel(UninterruptibleChannel.to(out)), batch)
    finally batch.close()
    rowWriter.reset()
    this.count("pythonDataSent", out.size() - before)
  }

  override def end(out: DataOutputStream): Unit = {
    ArrowStreamWriter.writeEndOfStream(new WriteChannel(UninterruptibleChannel.to(out)), IpcOption.DEFAULT)
    out.writeInt(SpecialLengths.END_OF_STREAM)
  }

  override def read(in: DataInputStream): Answer = {
    var answer: Answer = null
    var more = true
    while (answer == null && more) {
      if (reader == null) {
        in.readInt() match {
          case SpecialLengths.START_ARROW_STREAM => openStream(in)
          case WorkerProtocol.BatchTaken => answer = Answer.Taken
          case WorkerProtocol.RowFailed => answer = failedRow(in)
          case other => more = control(other, in)
        }
      } else if (reader.loadNextBatch()) {
        answer = loaded()
      } else {
        closeStream()
      }
    }
    answer
  }

  private def openStream(in: DataInputStream): Unit = {
    reader = new ArrowStreamReader(UninterruptibleChannel.from(in), allocator)
    val vectors = reader.getVectorSchemaRoot.getFieldVectors.asScala.map(new ArrowColumnVector(_))
    inbound = new ColumnarBatch(vectors.toArray[ColumnVector])
    received = 0
  }

  private def loaded(): Answer = {
    val rows = reader.getVectorSchemaRoot.getRowCount
    count("pythonDataReceived", reader.bytesRead - received)
    count("pythonNumRowsReceived", rows)
    received = reader.bytesRead
    if (rows == 0) {
      Answer.Taken
    } else {
      inbound.setNumRows(rows)
      new Answer(rows, results(inbound))
    }
  }

  private def closeStream(): Unit = {
    reader.close(false)
    reader = null
  }

  override def free(): Unit = {
    if (reader != null) {
      closeStream()
    }
    outbound.close()
    allocator.close()
  }
}

/** The session's Arrow settings. */
private[python] final case class ArrowFormat(
    timeZone: String,
    largeVarTypes: Boolean,
    runnerConf: Map[String, String]) {

  /** The command to run functions that take columns of `schema`. */
  def command(
      functions: Seq[(ChainedPythonFunctions, Long)],
      evalType: Int,
      arguments: Array[Array[ArgumentMetadata]],
      schema: StructType,
      metrics: Map[String, SQLMetric],
      identity: WorkerIdentity): WorkerCommand =
    new ArrowPythonWithNamedArgumentRunner(
      functions,
      evalType,
      arguments,
      schema,
      timeZone,
      largeVarTypes,
      runnerConf,
      metrics,
      identity.jobArtifacts,
      identity.session) with RealTimeRunner[Iterator[InternalRow], ColumnarBatch]
}

private[python] object ArrowFormat {
  def of(conf: SQLConf): ArrowFormat =
    ArrowFormat(conf.sessionLocalTimeZone, conf.arrowUseLargeVarTypes, ArrowPythonRunner.getPythonRunnerConfMap(conf))
}
