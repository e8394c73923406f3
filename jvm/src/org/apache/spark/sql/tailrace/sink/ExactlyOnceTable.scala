package org.apache.spark.sql.tailrace.sink

import org.apache.spark.sql.connector.catalog.Table

import tailrace.TailraceException

/** The table of an [[ExactlyOnceSink]], by which a query is checked before it starts. */
trait ExactlyOnceTable { self: Table =>

  /** The name that users write with. */
  def format: String

  final def needsRealTime: TailraceException = new TailraceException(
    "TAILRACE_SINK_NEEDS_REAL_TIME",
    s"the sink $format can identify rows in Real-Time Mode only.",
    s"start the query with .trigger(realTime=…), or ${ExactlyOnceTable.Otherwise}")
}

object ExactlyOnceTable {
  /** How a query is fixed that no such sink can write. */
  val Otherwise = "write with a sink that may write duplicates after a failure, such as format(\"kafka\")."
}
