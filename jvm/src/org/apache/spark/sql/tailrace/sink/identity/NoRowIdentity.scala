package org.apache.spark.sql.tailrace.sink.identity

import org.apache.spark.sql.tailrace.sink.ExactlyOnceTable.Otherwise

import tailrace.TailraceException

/** Why the sink could not recognize a query's rows when they are replayed, and what to do instead. */
final case class NoRowIdentity(problem: String, fix: String) {
  def error: TailraceException = new TailraceException(NoRowIdentity.Code, problem, fix)
}

object NoRowIdentity {
  val Code = "TAILRACE_NO_ROW_IDENTITY"

  val ofBatchFunctions: NoRowIdentity = NoRowIdentity(
    "mapInPandas and mapInArrow do not say which row a result belongs to, so " +
      "an exactly-once sink could not recognize it after a replay.",
    s"use a udf, pandas_udf or arrow_udf, or $Otherwise")

  def ofSource(name: String): NoRowIdentity = NoRowIdentity(
    s"the source $name gives its rows no offsets by which an exactly-once sink could identify them.",
    s"read from Kafka, or $Otherwise")

  /**
   * Either row of a match can complete it, and the join's state does not hold the origin of the other. See
   * [[MatchIdentity]].
   */
  val ofMatches: NoRowIdentity = NoRowIdentity(
    "a replay can complete a match of two streams with either of its rows, and in this query the content of a " +
      "match does not identify it either.",
    s"use an inner or left semi join with no other state and no shuffle behind it, or $Otherwise")

  /** @param format the sink */
  def ofUntrackedRows(format: String): NoRowIdentity = NoRowIdentity(
    s"the origins of rows are not tracked from their source to the sink $format.",
    "start the query with .trigger(realTime=…), and leave spark.sql.streaming.realTimeMode.allowlistCheck unset.")
}
