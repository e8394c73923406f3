package org.apache.spark.sql.tailrace.operators.python

import scala.collection.mutable.ArrayBuffer

import org.apache.spark.api.python.ChainedPythonFunctions
import org.apache.spark.sql.catalyst.expressions.{Expression, NamedArgumentExpression, PythonUDF}
import org.apache.spark.sql.execution.python.EvalPythonExec.ArgumentMetadata
import org.apache.spark.sql.types.{StructField, StructType}

/**
 * The functions of one operator and the expressions that they take as arguments, each expression once.
 *
 * @param functions the chains to call: where the result of a function is the only argument of the next, the innermost
 *                  comes first
 * @param arguments the arguments of each chain, as indexes into `inputs`
 */
private[python] final case class UdfCalls(
    functions: Seq[(ChainedPythonFunctions, Long)],
    arguments: Array[Array[ArgumentMetadata]],
    inputs: Seq[Expression]) {

  def schema: StructType = StructType(inputs.zipWithIndex.map { case (input, index) =>
    StructField(s"_$index", input.dataType)
  })
}

private[python] object UdfCalls {

  def of(udfs: Seq[PythonUDF]): UdfCalls = {
    val inputs = new ArrayBuffer[Expression]
    val (functions, arguments) = udfs.map { udf =>
      val (chain, innermost) = chained(udf)
      val indexes = innermost.children.map {
        case NamedArgumentExpression(name, value) => ArgumentMetadata(indexOf(value, inputs), Some(name))
        case value => ArgumentMetadata(indexOf(value, inputs), None)
      }
      ((chain, udf.resultId.id), indexes.toArray)
    }.unzip
    UdfCalls(functions, arguments.toArray, inputs.toSeq)
  }

  private def chained(udf: PythonUDF): (ChainedPythonFunctions, PythonUDF) = udf.children match {
    case Seq(inner: PythonUDF) =>
      val (chain, innermost) = chained(inner)
      (ChainedPythonFunctions(chain.funcs :+ udf.func), innermost)
    case _ => (ChainedPythonFunctions(Seq(udf.func)), udf)
  }

  private def indexOf(value: Expression, inputs: ArrayBuffer[Expression]): Int = {
    val known = inputs.indexWhere(_.semanticEquals(value))
    if (known >= 0) {
      known
    } else {
      inputs += value
      inputs.length - 1
    }
  }
}
