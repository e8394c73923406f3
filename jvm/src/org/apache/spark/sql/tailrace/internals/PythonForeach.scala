package org.apache.spark.sql.tailrace.internals

import org.apache.spark.api.python.PythonFunction
import org.apache.spark.sql.execution.python.streaming.PythonForeachWriter
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.tailrace.internals.names.ByName

/** What Spark's writer for a Python `foreach` keeps to itself. */
private[tailrace] object PythonForeach extends ByName {
  private val function = field[PythonFunction](classOf[PythonForeachWriter].getName, "func")
  private val schema = field[StructType](classOf[PythonForeachWriter].getName, "schema")

  def functionOf(writer: PythonForeachWriter): PythonFunction = function.of(writer)
  def schemaOf(writer: PythonForeachWriter): StructType = schema.of(writer)
}
