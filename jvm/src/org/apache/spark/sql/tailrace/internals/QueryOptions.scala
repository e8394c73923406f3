package org.apache.spark.sql.tailrace.internals

import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap
import org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution
import org.apache.spark.sql.tailrace.internals.names.ByName

/** The options of the writer that a query was started with. */
private[tailrace] object QueryOptions extends ByName {
  private val extraOptions = field[Map[String, String]](classOf[MicroBatchExecution].getName, "extraOptions")

  def of(run: MicroBatchExecution): Map[String, String] = CaseInsensitiveMap(extraOptions.of(run))
}
