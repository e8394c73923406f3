package org.apache.spark.sql.tailrace.sink.kafka

import tailrace.TailraceException

/** Why the sink could not recognise a query's rows when they are replayed, and what to do instead. */
final case class NoRowIdentity(problem: String, fix: String) {
  def error: TailraceException = new TailraceException(NoRowIdentity.Code, problem, fix)
}

object NoRowIdentity {
  val Code = "TAILRACE_NO_ROW_IDENTITY"
  private[kafka] val Plainly = "write with format(\"kafka\"), which may write duplicates after a failure."

  val ofBatchFunctions: NoRowIdentity = NoRowIdentity(
    "mapInPandas and mapInArrow do not say which row a result belongs to, so " +
      s"${TailraceKafka.Format} could not recognise it after a replay.",
    s"use a udf, pandas_udf or arrow_udf, or $Plainly")

  def ofSource(name: String): NoRowIdentity = NoRowIdentity(
    s"the source $name gives its rows no offsets by which ${TailraceKafka.Format} could identify them.",
    s"read from Kafka, or $Plainly")
}
