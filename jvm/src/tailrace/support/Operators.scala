package tailrace.support

/** The support registry's operators: everything not listed as supported is refused. */
object Operators {
  private val Exec = "org.apache.spark.sql.execution"
  private val Stateful = s"$Exec.streaming.operators.stateful"

  private val holdsRowsBack = "it waits for the end of its input, and an epoch's input ends only with the epoch."
  private val useMicroBatch = "keep this query in micro-batch: leave out .trigger(realTime=…)"

  private def yes(name: String, className: String) = Support(name, className, Supported)

  private def no(name: String, className: String, reason: String, remedy: String) =
    Support(name, className, Unsupported(reason, remedy))

  private val supported = Seq(
    yes("select, withColumn", s"$Exec.ProjectExec"),
    yes("filter, where", s"$Exec.FilterExec"),
    yes("explode and other generators", s"$Exec.GenerateExec"),
    yes("grouping sets", s"$Exec.ExpandExec"),
    yes("union", s"$Exec.UnionExec"),
    yes("observe", s"$Exec.CollectMetricsExec"),
    yes("typed map (JVM)", s"$Exec.MapElementsExec"),
    yes("typed mapPartitions (JVM)", s"$Exec.MapPartitionsExec"),
    yes("typed objects in (JVM)", s"$Exec.DeserializeToObjectExec"),
    yes("typed objects out (JVM)", s"$Exec.SerializeFromObjectExec"),
    yes("typed groupByKey (JVM)", s"$Exec.AppendColumnsExec"),
    yes("columnar to rows", s"$Exec.ColumnarToRowExec"),
    yes("write", s"$Exec.datasources.v2.WriteToDataSourceV2Exec"),
    yes("repartition", s"$Exec.exchange.ShuffleExchangeExec"),
    yes("broadcast of a table", s"$Exec.exchange.BroadcastExchangeExec"),
    yes("stream-static join with a broadcast table", s"$Exec.joins.BroadcastHashJoinExec"),
    yes("aggregation's buffer", s"$Exec.streaming.ProjectAggregationBufferExec"),
    yes("groupBy().agg(), windows", s"$Exec.streaming.StatefulStreamlineAggregateExec"),
    yes("aggregation's state, restore", s"$Stateful.StateStoreRestoreExec"),
    yes("aggregation's state, save", s"$Stateful.StateStoreSaveExec"),
    yes("dropDuplicates", s"$Stateful.StreamingDeduplicateExec"),
    yes("withWatermark", s"$Stateful.EventTimeWatermarkExec"),
    yes("withWatermark on state", s"$Stateful.UpdateEventTimeColumnExec"),
    yes("transformWithState (JVM)", s"$Stateful.transformwithstate.TransformWithStateExec"))

  private val pythonReason = "Spark hands rows to Python in batches that close only when the epoch ends."
  private val pythonRemedy =
    s"write it with pyspark.sql.functions or SQL expressions, which run in the JVM; or $useMicroBatch."

  private def python(name: String, className: String) = no(name, s"$Exec.python.$className", pythonReason, pythonRemedy)

  private val unsupported = Seq(
    python("Python UDF", "BatchEvalPythonExec"),
    python("Python UDF", "ArrowEvalPythonExec"),
    python("Python UDTF", "BatchEvalPythonUDTFExec"),
    python("Python UDTF", "ArrowEvalPythonUDTFExec"),
    python("mapInPandas", "MapInPandasExec"),
    python("mapInArrow", "MapInArrowExec"),
    python("Python transformWithState", "streaming.TransformWithStateInPySparkExec"),
    python("applyInPandasWithState", "streaming.FlatMapGroupsInPandasWithStateExec"),
    no(
      "stream-stream join",
      s"$Stateful.join.StreamingSymmetricHashJoinExec",
      "Spark's operator reads the whole epoch of one side before the other.",
      s"write the two sides to one topic and aggregate by key; or $useMicroBatch."),
    no(
      "session window",
      s"$Stateful.SessionWindowStateStoreRestoreExec",
      "a session closes when time passes, and within an epoch the watermark stands still.",
      s"use a tumbling or sliding window(…); or $useMicroBatch."),
    no(
      "session window",
      s"$Stateful.SessionWindowStateStoreSaveExec",
      "a session closes when time passes, and within an epoch the watermark stands still.",
      s"use a tumbling or sliding window(…); or $useMicroBatch."),
    no(
      "session window (merging)",
      s"$Exec.aggregate.MergingSessionsExec",
      holdsRowsBack,
      s"use a tumbling or sliding window(…); or $useMicroBatch."),
    no(
      "dropDuplicatesWithinWatermark",
      s"$Stateful.StreamingDeduplicateWithinWatermarkExec",
      "it is not yet tested in Real-Time Mode.",
      "use dropDuplicates, which keeps every key it has seen."),
    no(
      "flatMapGroupsWithState, mapGroupsWithState",
      s"$Stateful.flatmapgroupswithstate.FlatMapGroupsWithStateExec",
      holdsRowsBack,
      s"port it to transformWithState (JVM); or $useMicroBatch."),
    no("sort", s"$Exec.SortExec", holdsRowsBack, "sort where the result is read: a stream has no last row."),
    no(
      "limit",
      s"$Stateful.StreamingGlobalLimitExec",
      holdsRowsBack,
      s"filter by a condition instead; or $useMicroBatch."),
    no(
      "limit",
      s"$Exec.streaming.operators.stateful.StreamingLocalLimitExec",
      holdsRowsBack,
      s"filter by a condition instead; or $useMicroBatch."),
    no(
      "join that sorts both sides",
      s"$Exec.joins.SortMergeJoinExec",
      holdsRowsBack,
      "broadcast the static side: stream.join(F.broadcast(table), …)."),
    no(
      "join that builds a hash table per partition",
      s"$Exec.joins.ShuffledHashJoinExec",
      holdsRowsBack,
      "broadcast the static side: stream.join(F.broadcast(table), …)."),
    no(
      "join without equal keys",
      s"$Exec.joins.BroadcastNestedLoopJoinExec",
      "Spark does not admit it to Real-Time Mode.",
      s"join on equal keys with a broadcast table and filter afterwards; or $useMicroBatch."),
    no(
      "cross join",
      s"$Exec.joins.CartesianProductExec",
      holdsRowsBack,
      s"join on equal keys with a broadcast table; or $useMicroBatch."))

  /** Support of operators that Tailrace has never heard of: refused, with what is known of them. */
  private def unknown(className: String, nodeName: String) = no(
    s"the operator $nodeName",
    className,
    "it is not known to pass rows on one by one.",
    useMicroBatch + ".")

  /** A shuffle by range would start a job that samples its input, which never ends. */
  val RangeRepartition: Support = no(
    "repartitionByRange, orderBy",
    s"$Exec.exchange.ShuffleExchangeExec",
    "choosing the ranges needs a sample of the whole input.",
    "use repartition(n, columns), which hashes.")

  val all: Seq[Support] = supported ++ unsupported

  private val byClass = all.map(row => row.className -> row).toMap

  def of(className: String, nodeName: String): Support = byClass.getOrElse(className, unknown(className, nodeName))
}
