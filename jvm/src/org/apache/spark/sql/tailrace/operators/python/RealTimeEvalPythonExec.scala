package org.apache.spark.sql.tailrace.operators.python

import scala.jdk.CollectionConverters._

import net.razorvine.pickle.Unpickler

import org.apache.spark.{JobArtifactSet, TaskContext}
import org.apache.spark.api.python.PythonEvalType
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.errors.QueryExecutionErrors
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode}
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.execution.python.{
  BatchEvalPythonExec, EvaluatePython, PythonSQLMetrics, PythonUDFWithNamedArgumentsRunner
}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{DataType, StructField, StructType, UserDefinedType}
import org.apache.spark.sql.types.DataType.equalsIgnoreCompatibleCollation
import org.apache.spark.sql.vectorized.ColumnarBatch
import org.apache.spark.sql.tailrace.errors.{BadRecordHandler, ErrorPolicy}
import org.apache.spark.sql.tailrace.origin.UsesOrigins

/** Python functions with one result for each row: `udf`, `pandas_udf` and `arrow_udf`, scalar or over an iterator. */
case class RealTimeEvalPythonExec(
    udfs: Seq[PythonUDF],
    resultAttrs: Seq[Attribute],
    child: SparkPlan,
    evalType: Int,
    onError: ErrorPolicy)
    extends UnaryExecNode
    with PythonSQLMetrics
    with UsesOrigins {

  override def output: Seq[Attribute] = child.output ++ resultAttrs
  override def producedAttributes: AttributeSet = AttributeSet(resultAttrs)
  override def outputPartitioning: Partitioning = child.outputPartitioning

  override protected def doExecute(): RDD[InternalRow] = {
    val call = UdfCalls.of(udfs)
    val identity = WorkerIdentity.of(this)
    val workerConf = if (onError.skipsBadRecords) WorkerProtocol.SkipsBadRows else Map.empty[String, String]
    val types = resultAttrs.map(_.dataType)
    val kind =
      if (evalType == PythonEvalType.SQL_BATCHED_UDF) {
        new PickledFunctions(call, types, workerConf, identity, pythonMetrics, conf.pysparkBinaryAsBytes)
      } else {
        val format = ArrowFormat.of(conf)
        val withConf = format.copy(runnerConf = format.runnerConf ++ workerConf)
        new ArrowFunctions(call, evalType, types, withConf, identity, pythonMetrics)
      }
    val limits = PythonLimits.of(
      conf,
      if (evalType == PythonEvalType.SQL_BATCHED_UDF) conf.getConf(SQLConf.PYTHON_UDF_MAX_RECORDS_PER_BATCH)
      else conf.arrowMaxRecordsPerBatch)
    val repeatable = !ArrowFunctions.OverIterators.contains(evalType)
    val (childOutput, allOutput, policy) = (child.output, output, onError)

    child.execute().mapPartitionsInternal { rows =>
      val context = TaskContext.get()
      def arguments(): MutableProjection = {
        val projection = MutableProjection.create(call.inputs, childOutput)
        projection.initialize(context.partitionId())
        projection
      }
      val connect = () => kind.connect(arguments())
      val joined = new JoinedRow
      val toUnsafe = UnsafeProjection.create(allOutput, allOutput)
      if (policy.skipsBadRecords) {
        val handler = new BadRecordHandler(policy, sendsLater = true)
        // A plain column cannot fail.
        val checkArguments: InternalRow => Unit =
          if (call.inputs.forall(_.isInstanceOf[Attribute])) _ => () else arguments()(_)
        val exchange = new RetryingExchange(rows, connect, checkArguments, limits, context, handler)
        exchange.map { case (row, result) => toUnsafe(joined(row, result)) }
      } else {
        val exchange = new WorkerExchange(rows, connect, keepsRows = true, repeatable, limits, context)
        exchange.flatMap(_.rows).map(result => toUnsafe(joined(exchange.nextRow(), result)))
      }
    }
  }

  override protected def withNewChildInternal(newChild: SparkPlan): SparkPlan = copy(child = newChild)
}

/** The parts of an operator's environment that select its pool of workers. */
private[python] final case class WorkerIdentity(jobArtifacts: Option[String], session: Option[String])

private[python] object WorkerIdentity {
  def of(plan: SparkPlan): WorkerIdentity = WorkerIdentity(
    JobArtifactSet.getCurrentJobArtifactState.map(_.uuid),
    Option(plan.session).filter(_.sessionState.conf.pythonWorkerLoggingEnabled).map(_.sessionUUID))
}

/** A way to call functions row by row. */
private[python] sealed trait RowFunctions extends Serializable {

  /** The command and the protocol of one task. */
  def connect(arguments: InternalRow => InternalRow): WorkerConnection
}

private[python] final class ArrowFunctions(
    call: UdfCalls,
    evalType: Int,
    resultTypes: Seq[DataType],
    format: ArrowFormat,
    identity: WorkerIdentity,
    metrics: Map[String, SQLMetric])
    extends RowFunctions {

  override def connect(arguments: InternalRow => InternalRow): WorkerConnection = {
    val schema = call.schema
    val command = format.command(call.functions, evalType, call.arguments, schema, metrics, identity)
    val answersEachBatch = !ArrowFunctions.OverIterators.contains(evalType)
    WorkerConnection(
      command,
      new ArrowProtocol(schema, format, answersEachBatch, arguments, rowsOf, command.accumulators, metrics))
  }

  private val expectedTypes = resultTypes.map(_.transformRecursively { case udt: UserDefinedType[_] => udt.sqlType })

  private def rowsOf(batch: ColumnarBatch): Iterator[InternalRow] = {
    val types = (0 until batch.numCols()).map(batch.column(_).dataType())
    if (!equalsIgnoreCompatibleCollation(expectedTypes, types)) {
      throw QueryExecutionErrors.arrowDataTypeMismatchError("pandas_udf()", expectedTypes, types)
    }
    batch.rowIterator().asScala
  }
}

private[python] object ArrowFunctions {
  val OverIterators: Set[Int] =
    Set(PythonEvalType.SQL_SCALAR_PANDAS_ITER_UDF, PythonEvalType.SQL_SCALAR_ARROW_ITER_UDF)
}

private[python] final class PickledFunctions(
    call: UdfCalls,
    resultTypes: Seq[DataType],
    workerConf: Map[String, String],
    identity: WorkerIdentity,
    metrics: Map[String, SQLMetric],
    binaryAsBytes: Boolean)
    extends RowFunctions {

  override def connect(arguments: InternalRow => InternalRow): WorkerConnection = {
    EvaluatePython.registerPicklers()
    val runner = new PythonUDFWithNamedArgumentsRunner(
      call.functions,
      PythonEvalType.SQL_BATCHED_UDF,
      call.arguments,
      metrics,
      identity.jobArtifacts,
      identity.session) with RealTimeRunner[Array[Byte], Array[Byte]] {
      override def runnerConf: Map[String, String] = super.runnerConf ++ workerConf
    }
    val schema = call.schema
    def pickle(rows: Iterator[InternalRow], count: Int): Array[Byte] = BatchEvalPythonExec
      .getInputIterator(rows.map(arguments), schema, count, binaryAsBytes)
      .next()
    WorkerConnection(runner, new PickledProtocol(pickle, Some(unpickle()), runner.accumulators, metrics))
  }

  /** The results of a single function arrive bare, those of several functions as tuples. */
  private def unpickle(): Array[Byte] => Seq[InternalRow] = {
    val unpickler = new Unpickler
    val toRow: Any => InternalRow = resultTypes match {
      case Seq(single) =>
        val convert = EvaluatePython.makeFromJava(single)
        result => new GenericInternalRow(Array[Any](convert(result)))
      case several =>
        val convert = EvaluatePython.makeFromJava(StructType(several.map(StructField("", _))))
        result => convert(result).asInstanceOf[InternalRow]
    }
    bytes => unpickler.loads(bytes).asInstanceOf[java.util.ArrayList[Any]].asScala.map(toRow).toSeq
  }
}
