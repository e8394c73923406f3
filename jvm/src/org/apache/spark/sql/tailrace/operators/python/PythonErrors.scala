package org.apache.spark.sql.tailrace.operators.python

import org.apache.spark.api.python.PythonException
import org.apache.spark.sql.tailrace.conf.TailraceConf
import org.apache.spark.sql.tailrace.origin.SourcePosition

import tailrace.TailraceException

/** Failures of a Python worker in the user's terms, with the records that it was busy with. */
private[python] object PythonErrors {

  /** The records that a worker was busy with; None if it had no batch, empty if it was firing timers. */
  type AtWork = Option[Seq[SourcePosition]]

  /** Spark's own error for an exception in Python, with the record added. */
  def raised(traceback: String, atWork: AtWork): Throwable = new PythonException(
    errorClass = "PYTHON_EXCEPTION",
    messageParameters = Map(
      "msg" -> s"An exception was thrown from the Python worker ${describe(atWork)}",
      "traceback" -> traceback))

  def lost(cause: Throwable, crashReport: Option[String], atWork: AtWork): Throwable = {
    val error = new TailraceException(
      "TAILRACE_PYTHON_WORKER_LOST",
      s"the Python worker ended unexpectedly ${describe(atWork)}: it was killed, ran out of memory, exited by itself " +
        s"or crashed in native code.${crashReport.map("\n" + _).getOrElse("")}",
      "look at the executor's standard error and at the memory of its host; " +
        "spark.sql.execution.pyspark.udf.faulthandler.enabled=true shows where native code crashed. " +
        "No row is lost: restart the query; it continues from its last checkpoint.")
    error.initCause(cause)
    error
  }

  def timedOut(timeoutMs: Long, atWork: AtWork): Throwable = new TailraceException(
    "TAILRACE_PYTHON_TIMEOUT",
    s"the Python function has not answered for ${timeoutMs / 1000.0} s ${describe(atWork)}.",
    s"find out what it waits for, or give it longer with ${TailraceConf.PythonTimeout.key}. " +
      "No row is lost: restart the query; it continues from its last checkpoint.")

  def heldBack(timeoutMs: Long): Throwable = new TailraceException(
    "TAILRACE_PYTHON_TIMEOUT",
    s"the Python function over an iterator takes rows in and has given no result for ${timeoutMs / 1000.0} s.",
    "yield the results of each batch before asking for the next: an epoch's input does not end before the epoch.")

  private def describe(atWork: AtWork): String = atWork match {
    case None => "while it had no record (at its start, between records or at its end)"
    case Some(Seq()) => "while it looked after its timers"
    case Some(positions) => s"at ${SourcePosition.describe(positions)}"
  }
}
