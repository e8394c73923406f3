package org.apache.spark.sql.tailrace.operators.python

import java.util

import net.razorvine.pickle.Pickler

import org.apache.spark.{JobArtifactSet, TaskContext}
import org.apache.spark.api.python.{ChainedPythonFunctions, PythonFunction, PythonRunner}
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.connector.catalog.{SupportsWrite, Table, TableCapability}
import org.apache.spark.sql.connector.write._
import org.apache.spark.sql.connector.write.streaming.{StreamingDataWriterFactory, StreamingWrite}
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode}
import org.apache.spark.sql.execution.python.{EvaluatePython, PythonSQLMetrics}
import org.apache.spark.sql.execution.python.streaming.PythonForeachWriter
import org.apache.spark.sql.execution.streaming.sources.ForeachWriterTable
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.internal.connector.SupportsStreamingUpdateAsAppend
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.tailrace.internals.PythonForeach
import org.apache.spark.sql.tailrace.origin.UsesOrigins

/**
 * `writeStream.foreach` with a Python function or object. It is an operator below a sink that does nothing, because an
 * operator can wait for the worker: a failure in Python then ends the task even if no further row arrives.
 */
case class RealTimeForeachExec(func: PythonFunction, schemaInPython: StructType, child: SparkPlan)
    extends UnaryExecNode
    with PythonSQLMetrics
    with UsesOrigins {

  override def output: Seq[Attribute] = child.output

  override protected def doExecute(): RDD[InternalRow] = {
    val limits = PythonLimits.of(conf, conf.getConf(SQLConf.PYTHON_UDF_MAX_RECORDS_PER_BATCH))
    val binaryAsBytes = conf.pysparkBinaryAsBytes
    val jobArtifacts = JobArtifactSet.getCurrentJobArtifactState.map(_.uuid)
    val (function, schema, metrics) = (func, schemaInPython, pythonMetrics)

    def connect(): WorkerConnection = {
      EvaluatePython.registerPicklers()
      val runner = new ForeachRunner(function, jobArtifacts)
      val pickler = new Pickler( /* useMemo = */ true, /* valueCompare = */ false)
      val pickle = (batch: Iterator[InternalRow], _: Int) =>
        pickler.dumps(batch.map(EvaluatePython.toJava(_, schema, binaryAsBytes)).toArray)
      WorkerConnection(runner, new PickledProtocol(pickle, results = None, runner.accumulators, metrics))
    }

    child.execute().mapPartitionsInternal { rows =>
      val exchange =
        new WorkerExchange(rows, () => connect(), keepsRows = true, repeatable = false, limits, TaskContext.get())
      // Processed rows continue to the sink, which only counts them.
      exchange.flatMap(_.rows).map(_ => exchange.nextRow())
    }
  }

  override protected def withNewChildInternal(newChild: SparkPlan): SparkPlan = copy(child = newChild)
}

private final class ForeachRunner(func: PythonFunction, jobArtifacts: Option[String])
    extends PythonRunner(Seq(ChainedPythonFunctions(Seq(func))), jobArtifacts)
    with RealTimeRunner[Array[Byte], Array[Byte]] {
  override val pythonExec: String = SQLConf.get.pysparkWorkerPythonExecutable.getOrElse(func.pythonExec)
  override val faultHandlerEnabled: Boolean = SQLConf.get.pythonUDFWorkerFaulthandlerEnabled
  override val hideTraceback: Boolean = SQLConf.get.pysparkHideTraceback
  override val simplifiedTraceback: Boolean = SQLConf.get.pysparkSimplifiedTraceback
  override val tracebackWithLocals: Boolean = SQLConf.get.pysparkTracebackWithLocals
}

/** The sink of a Python `foreach`; all the work is done by [[RealTimeForeachExec]] below it. */
final class PythonForeachTable(func: PythonFunction, rowSchema: StructType) extends Table with SupportsWrite {
  override def name(): String = "ForeachSink"
  override def schema(): StructType = StructType(Nil)
  override def capabilities(): util.Set[TableCapability] = util.EnumSet.of(TableCapability.STREAMING_WRITE)

  override def newWriteBuilder(info: LogicalWriteInfo): WriteBuilder =
    new WriteBuilder with SupportsTruncate with SupportsStreamingUpdateAsAppend {
      override def truncate(): WriteBuilder = this
      override def build(): Write = new Write {
        override def toStreaming: StreamingWrite = new PythonForeachWrite(func, rowSchema)
      }
    }
}

object PythonForeachTable {

  /** The replacement for Spark's own sink, if `sink` is a `foreach` with a Python function. */
  def replacing(sink: Table): Option[PythonForeachTable] = sink match {
    case foreach: ForeachWriterTable[_] =>
      foreach.writer match {
        case writer: PythonForeachWriter =>
          Some(new PythonForeachTable(PythonForeach.functionOf(writer), PythonForeach.schemaOf(writer)))
        case _ => None
      }
    case _ => None
  }
}

final class PythonForeachWrite(val func: PythonFunction, val schema: StructType) extends StreamingWrite {
  override def createStreamingWriterFactory(info: PhysicalWriteInfo): StreamingDataWriterFactory = NothingToWrite
  override def commit(epochId: Long, messages: Array[WriterCommitMessage]): Unit = ()
  override def abort(epochId: Long, messages: Array[WriterCommitMessage]): Unit = ()
}

private object NothingToWrite extends StreamingDataWriterFactory {
  override def createWriter(partitionId: Int, taskId: Long, epochId: Long): DataWriter[InternalRow] =
    new DataWriter[InternalRow] {
      override def write(row: InternalRow): Unit = ()
      override def commit(): WriterCommitMessage = Done
      override def abort(): Unit = ()
      override def close(): Unit = ()
    }

  private case object Done extends WriterCommitMessage
}
