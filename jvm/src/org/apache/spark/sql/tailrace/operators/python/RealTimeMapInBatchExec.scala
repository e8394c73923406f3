package org.apache.spark.sql.tailrace.operators.python

import scala.jdk.CollectionConverters._

import org.apache.spark.TaskContext
import org.apache.spark.api.python.{ChainedPythonFunctions, PythonEvalType}
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.errors.QueryExecutionErrors
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode}
import org.apache.spark.sql.execution.python.EvalPythonExec.ArgumentMetadata
import org.apache.spark.sql.execution.python.PythonSQLMetrics
import org.apache.spark.sql.types.{DataType, StructField, StructType}
import org.apache.spark.sql.vectorized.{ArrowColumnVector, ColumnarBatch}
import org.apache.spark.sql.tailrace.origin.{RowIdentity, UsesOrigins}

/** `mapInPandas` and `mapInArrow`: a Python function over an iterator of batches, with any number of results. */
case class RealTimeMapInBatchExec(func: PythonUDF, output: Seq[Attribute], child: SparkPlan)
    extends UnaryExecNode
    with PythonSQLMetrics
    with UsesOrigins {

  override def producedAttributes: AttributeSet = AttributeSet(output)
  override def outputPartitioning: Partitioning = child.outputPartitioning
  // The function may give back any number of rows for a batch, in any order.
  override def rowIdentity: RowIdentity = RowIdentity.Unknown

  override protected def doExecute(): RDD[InternalRow] = {
    val functions = Seq((ChainedPythonFunctions(Seq(func.func)), func.resultId.id))
    // The function takes each row as one struct, whose fields Python sees as the columns of the frame.
    val schema = StructType(Array(StructField("struct", child.schema)))
    val format = ArrowFormat.of(conf)
    val limits = PythonLimits.of(conf, conf.arrowMaxRecordsPerBatch)
    val identity = WorkerIdentity.of(this)
    val validate = conf.pysparkArrowValidateSchema
    val (evalType, expected, columns, metrics) = (func.evalType, func.dataType, output, pythonMetrics)

    def results(batch: ColumnarBatch): Iterator[InternalRow] = {
      val actual = batch.column(0).dataType()
      if (validate && !DataType.equalsIgnoreCompatibleNullability(actual, expected)) {
        throw QueryExecutionErrors
          .arrowDataTypeMismatchError(PythonEvalType.toString(evalType), Seq(expected), Seq(actual))
      }
      val struct = batch.column(0).asInstanceOf[ArrowColumnVector]
      val flat = new ColumnarBatch(columns.indices.map(struct.getChild).toArray)
      flat.setNumRows(batch.numRows())
      flat.rowIterator().asScala
    }

    def connect(): WorkerConnection = {
      val arguments = Array(Array(ArgumentMetadata(0, None)))
      val command = format.command(functions, evalType, arguments, schema, metrics, identity)
      val protocol = new ArrowProtocol(
        schema,
        format,
        answersEachBatch = false,
        arguments = row => InternalRow(row),
        results = results,
        command.accumulators,
        metrics)
      WorkerConnection(command, protocol)
    }

    child.execute().mapPartitionsInternal { rows =>
      val exchange =
        new WorkerExchange(rows, () => connect(), keepsRows = false, repeatable = false, limits, TaskContext.get())
      exchange.flatMap(_.rows).map(UnsafeProjection.create(columns, columns))
    }
  }

  override protected def withNewChildInternal(newChild: SparkPlan): SparkPlan = copy(child = newChild)
}
