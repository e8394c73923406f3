package org.apache.spark.sql.tailrace.operators.python

import scala.util.Try

import org.apache.spark.network.util.JavaUtils
import org.apache.spark.sql.internal.SQLConf

import tailrace.TailraceException

/**
 * The session's limits for Python functions.
 *
 * @param timeoutMs       how long a function may take for a batch
 * @param maxRowsPerBatch from Spark's own setting
 */
private[python] final case class PythonLimits(timeoutMs: Long, maxRowsPerBatch: Int)

private[python] object PythonLimits {
  val TimeoutKey = "spark.tailrace.python.timeout"
  private val DefaultTimeout = "2min"

  def of(conf: SQLConf, maxRowsPerBatch: Int): PythonLimits = {
    val text = conf.getConfString(TimeoutKey, DefaultTimeout)
    val timeoutMs = Try(JavaUtils.timeStringAsMs(text)).toOption.filter(_ > 0).getOrElse {
      throw new TailraceException(
        "TAILRACE_BAD_SETTING",
        s"$TimeoutKey is '$text', which is no length of time above zero.",
        "write a number with a unit, for example 30s or 2min.")
    }
    PythonLimits(timeoutMs, if (maxRowsPerBatch > 0) maxRowsPerBatch else Int.MaxValue)
  }
}
