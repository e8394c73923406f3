package org.apache.spark.sql.tailrace.internals

import java.io.DataOutputStream

import org.apache.spark.sql.execution.python.streaming.TransformWithStateInPySparkStateServer
import org.apache.spark.sql.tailrace.internals.names.ByName

/** Where Spark's state server writes its answers to a Python worker. */
private[tailrace] object StateServerOutput extends ByName {
  private val outputStream =
    field[DataOutputStream](classOf[TransformWithStateInPySparkStateServer].getName, "outputStream")

  def of(server: TransformWithStateInPySparkStateServer): DataOutputStream = outputStream.of(server)
}
