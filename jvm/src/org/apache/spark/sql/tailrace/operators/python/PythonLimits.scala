package org.apache.spark.sql.tailrace.operators.python

import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.tailrace.conf.TailraceConf

/**
 * The session's limits for Python functions.
 *
 * @param timeoutMs       how long a function may take for a batch
 * @param maxRowsPerBatch from Spark's own setting
 */
private[python] final case class PythonLimits(timeoutMs: Long, maxRowsPerBatch: Int)

private[python] object PythonLimits {
  def of(conf: SQLConf, maxRowsPerBatch: Int): PythonLimits = PythonLimits(
    TailraceConf.PythonTimeout.valueIn(conf),
    if (maxRowsPerBatch > 0) maxRowsPerBatch else Int.MaxValue)
}
