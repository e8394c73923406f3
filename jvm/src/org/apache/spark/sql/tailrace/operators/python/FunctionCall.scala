package org.apache.spark.sql.tailrace.operators.python

import scala.collection.mutable.ArrayBuffer

import org.apache.spark.api.python.ChainedPythonFunctions
import org.apache.spark.sql.catalyst.expressions.{Expression, NamedArgumentExpression, PythonUDF}
import org.apache.spark.sql.execution.python.EvalPythonExec.ArgumentMetadata
import org.apache.spark.sql.types.{StructField, StructType}

/**
 * The functions of one operator and the columns they take, each column once.
 *
 * @param functions what to call, innermost first where the result of one is the only argument of the next
 * @param arguments for each function, where among `inputs` its arguments are
 */
private[python] final case class FunctionCall(
    functions: Seq[(ChainedPythonFunctions, Long)],
    arguments: Array[Array[ArgumentMetadata]],
    inputs: Seq[Expression]) {

  def schema: StructType = StructType(inputs.zipWithIndex.map { case (input, index) =>
    StructField(s"_$index", input.dataType)
  })
}

private[python] object FunctionCall {

  def of(udfs: Seq[PythonUDF]): FunctionCall = {
    val inputs = new ArrayBuffer[Expression]
    val (functions, arguments) = udfs.map { udf =>
      val (chain, innermost) = chained(udf)
      val places = innermost.children.map {
        case NamedArgumentExpression(name, value) => ArgumentMetadata(place(value, inputs), Some(name))
        case value => ArgumentMetadata(place(value, inputs), None)
      }
      ((chain, udf.resultId.id), places.toArray)
    }.unzip
    FunctionCall(functions, arguments.toArray, inputs.toSeq)
  }

  private def chained(udf: PythonUDF): (ChainedPythonFunctions, PythonUDF) = udf.children match {
    case Seq(inner: PythonUDF) =>
      val (chain, innermost) = chained(inner)
      (ChainedPythonFunctions(chain.funcs :+ udf.func), innermost)
    case _ => (ChainedPythonFunctions(Seq(udf.func)), udf)
  }

  private def place(value: Expression, inputs: ArrayBuffer[Expression]): Int = {
    val known = inputs.indexWhere(_.semanticEquals(value))
    if (known >= 0) {
      known
    } else {
      inputs += value
      inputs.length - 1
    }
  }
}
