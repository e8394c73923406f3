package tailrace.support

/** The support registry's operators: everything not listed as supported is refused. */
object Operators {
  private val Exec = "org.apache.spark.sql.execution"
  private val Stateful = s"$Exec.streaming.operators.stateful"
  private val Python = "org.apache.spark.sql.tailrace.operators.python"
  private val Origin = "org.apache.spark.sql.tailrace.operators.origin"
  private val Metrics = "org.apache.spark.sql.tailrace.metrics"
  private val Overlap = "org.apache.spark.sql.tailrace.epoch.overlap"

  private val RowByRow = "Row by row"
  private val Joins = "Joins"
  private val State = "State"
  private val PythonCode = "Python"
  private val Partitioning = "Partitioning and order"
  private val NeverWritten = ""

  private val holdsRowsBack = "it waits for the end of its input, which ends only with the epoch."
  private val useMicroBatch = "keep this query in micro-batch: remove .trigger(realTime=…)"

  private def yes(group: String, name: String, className: String, note: String = "") =
    Support(group, name, className, Supported(note))

  private def no(group: String, name: String, className: String, reason: String, remedy: String) =
    Support(group, name, className, Unsupported(reason, remedy))

  /** What users call an aggregation that keeps state. */
  val StatefulAggregation = "groupBy().agg(), window(…)"

  private val supported = Seq(
    yes(RowByRow, "select, withColumn", s"$Exec.ProjectExec").overlapping,
    yes(RowByRow, "filter, where", s"$Exec.FilterExec").overlapping,
    yes(RowByRow, "explode and other generators", s"$Exec.GenerateExec").overlapping,
    yes(RowByRow, "rollup, cube, grouping sets", s"$Exec.ExpandExec").overlapping,
    yes(RowByRow, "union", s"$Exec.UnionExec", "of different sources.").overlapping,
    yes(RowByRow, "observe", s"$Exec.CollectMetricsExec", "its metrics are reported at epoch boundaries."),
    yes(RowByRow, "typed map (JVM)", s"$Exec.MapElementsExec").overlapping,
    yes(
      RowByRow,
      "typed mapPartitions (JVM)",
      s"$Exec.MapPartitionsExec",
      "the function must not read ahead.").overlapping,
    yes(Joins, "stream-static join with a broadcast table", s"$Exec.joins.BroadcastHashJoinExec").overlapping,
    yes(
      Joins,
      "stream-stream join",
      "org.apache.spark.sql.tailrace.operators.join.RealTimeJoinExec",
      "inner, left, right and full outer, left semi, on equal keys. A match leaves as soon as its second row " +
        "arrives, an outer row at an epoch boundary, or [earlier](../guide/watermarks.md). " +
        "[Joins](../guide/joins.md).").overlapping,
    yes(State, StatefulAggregation, s"$Exec.streaming.StatefulStreamlineAggregateExec", "an update for each row.")
      .overlapping,
    yes(
      State,
      "session_window(…)",
      "org.apache.spark.sql.tailrace.operators.session.RealTimeSessionsExec",
      "an update for each row; with `append`, only closed sessions. Sessions close at epoch boundaries, or " +
        "[earlier](../guide/sessions.md#when-a-session-closes). [Sessions](../guide/sessions.md).").overlapping,
    yes(
      State,
      "dropDuplicates",
      s"$Stateful.StreamingDeduplicateExec",
      "keeps every key, unless a watermark column is among them.").overlapping,
    yes(
      State,
      "dropDuplicatesWithinWatermark",
      s"$Stateful.StreamingDeduplicateWithinWatermarkExec",
      "keeps a key for the watermark's delay and up to two more epochs.").overlapping,
    yes(
      State,
      "withWatermark",
      s"$Stateful.EventTimeWatermarkExec",
      "advances at epoch boundaries, or [earlier](../guide/watermarks.md).").overlapping,
    yes(
      State,
      "transformWithState (JVM)",
      s"$Stateful.transformwithstate.TransformWithStateExec",
      "processing-time timers and TTL do not wait for a row; event-time timers fire at epoch boundaries.")
      .overlapping,
    yes(
      PythonCode,
      "udf, pandas_udf, arrow_udf",
      s"$Python.RealTimeEvalPythonExec",
      "scalar or over an iterator, with Arrow or pickled; a function over an iterator must yield results as it goes.")
      .overlapping,
    yes(
      PythonCode,
      "transformWithState, transformWithStateInPandas (Python)",
      s"$Python.RealTimeTransformWithStateExec",
      "the processor is called for each row; processing-time timers fire when they are due, event-time timers at " +
        "epoch boundaries or [earlier](../guide/watermarks.md).")
      .overlapping,
    yes(PythonCode, "mapInPandas, mapInArrow", s"$Python.RealTimeMapInBatchExec", "must yield results as it goes.")
      .overlapping,
    yes(Partitioning, "repartition(n, columns)", s"$Exec.exchange.ShuffleExchangeExec", "a streaming shuffle.")
      .overlapping,
    yes(NeverWritten, "foreach (Python)", s"$Python.RealTimeForeachExec"),
    yes(NeverWritten, "the origin of a row, noted", s"$Origin.OriginFromSourceExec"),
    yes(NeverWritten, "the origin of a row, into a shuffle", s"$Origin.OriginIntoShuffleExec"),
    yes(NeverWritten, "the origin of a row, out of a shuffle", s"$Origin.OriginOutOfShuffleExec"),
    yes(NeverWritten, "time that passes without a row", "org.apache.spark.sql.tailrace.operators.state.IdleTicksExec")
      .overlapping,
    yes(
      NeverWritten,
      "a row that cannot be processed, caught",
      "org.apache.spark.sql.tailrace.errors.ErrorGuardExec").overlapping,
    yes(NeverWritten, "an epoch's latency in its progress", s"$Metrics.LatencyInProgressExec"),
    yes(NeverWritten, "typed objects in (JVM)", s"$Exec.DeserializeToObjectExec").overlapping,
    yes(NeverWritten, "typed objects out (JVM)", s"$Exec.SerializeFromObjectExec").overlapping,
    yes(NeverWritten, "typed groupByKey (JVM)", s"$Exec.AppendColumnsExec").overlapping,
    yes(NeverWritten, "columnar to rows", s"$Exec.ColumnarToRowExec").overlapping,
    yes(NeverWritten, "write", s"$Exec.datasources.v2.WriteToDataSourceV2Exec").overlapping,
    yes(NeverWritten, "write that overlaps epochs", s"$Overlap.OverlappedWriteExec"),
    yes(NeverWritten, "order of rows across epochs", s"$Overlap.KeepOrderExec"),
    yes(NeverWritten, "state handed from epoch to epoch", s"$Overlap.HandOverStateExec"),
    yes(NeverWritten, "broadcast of a table", s"$Exec.exchange.BroadcastExchangeExec"),
    yes(NeverWritten, "aggregation's buffer", s"$Exec.streaming.ProjectAggregationBufferExec").overlapping,
    yes(NeverWritten, "aggregation's state, restore", s"$Stateful.StateStoreRestoreExec"),
    yes(NeverWritten, "aggregation's state, save", s"$Stateful.StateStoreSaveExec"),
    yes(NeverWritten, "withWatermark on state", s"$Stateful.UpdateEventTimeColumnExec"))

  /** Our own processor in Spark's operator. */
  private val BoundedDeduplication: Support = yes(
    State,
    "tailrace.drop_duplicates",
    s"$Stateful.transformwithstate.TransformWithStateExec",
    "dropDuplicates with a time to live instead of a watermark: tailrace.drop_duplicates(rows, [\"id\"], " +
      "ttl=\"10 minutes\"). In micro-batch as well.").overlapping

  private val sparksStreamJoin = s"$Stateful.join.StreamingSymmetricHashJoinExec"

  val StreamJoinWithoutEqualKeys: Support = no(
    Joins,
    "stream-stream join without equal keys",
    sparksStreamJoin,
    "each row would have to be compared with every row of the other stream so far.",
    "add an equality of columns to the condition, in addition to the range in time.")

  val StreamJoinOfAnotherKind: Support = no(
    Joins,
    "left anti join of two streams",
    sparksStreamJoin,
    "Spark has none.",
    "join with \"left_outer\" and .outputMode(\"append\"), and keep the rows whose right side is null.")

  private val broadcastIt = "broadcast the static side: stream.join(F.broadcast(table), …)."

  val JoinWithoutEqualKeys: Support = no(
    Joins,
    "join without equal keys, cross join",
    s"$Exec.joins.BroadcastNestedLoopJoinExec",
    "Spark does not admit it to Real-Time Mode.",
    s"join on equal keys with a broadcast table and filter afterwards; or $useMicroBatch.")

  val FlatMapGroupsWithState: Support = no(
    State,
    "flatMapGroupsWithState, mapGroupsWithState",
    s"$Stateful.flatmapgroupswithstate.FlatMapGroupsWithStateExec",
    holdsRowsBack,
    s"port it to transformWithState; or $useMicroBatch.")

  val Limit: Support = no(
    Partitioning,
    "limit, offset",
    s"$Stateful.StreamingGlobalLimitExec",
    holdsRowsBack,
    s"filter by a condition; or $useMicroBatch.")

  val Sort: Support =
    no(
      Partitioning,
      "sort",
      s"$Exec.SortExec",
      holdsRowsBack,
      "sort where the result is read: a stream has no last row.")

  private val pythonState = "Spark sorts the rows of the whole epoch by key before Python sees the first one."
  private val aggregateInstead = s"use groupBy().agg() and Python functions on its updates; or $useMicroBatch."

  val ApplyInPandasWithState: Support = no(
    PythonCode,
    "applyInPandasWithState",
    s"$Exec.python.streaming.FlatMapGroupsInPandasWithStateExec",
    pythonState,
    "port it to transformWithStateInPandas: the state becomes a value state, the timeout a timer; " +
      s"or $useMicroBatch.")

  private val GroupedPython: Support = no(
    PythonCode,
    "groupBy().applyInPandas, applyInArrow",
    s"$Exec.python.FlatMapGroupsInPandasExec",
    pythonState,
    aggregateInstead)

  private val Sample: Support = no(
    RowByRow,
    "sample",
    s"$Exec.SampleExec",
    "Spark does not admit it to Real-Time Mode.",
    "filter at random: .where(F.rand() < 0.1).")

  private val Coalesce: Support = no(
    Partitioning,
    "coalesce",
    s"$Exec.CoalesceExec",
    "a task would read one partition to its end before the next, and an epoch's partitions have no end.",
    "use repartition(n), which mixes them.")

  val PythonUdtf: Support = no(
    PythonCode,
    "udtf (Python table function)",
    s"$Exec.python.BatchEvalPythonUDTFExec",
    "its terminate() is due at the end of the input, which ends only with the epoch.",
    "return an array from a udf and explode it, or use mapInPandas or mapInArrow.")

  private val barrier = "its stage would need its own slots, and all stages of a real-time query run at the same time."
  private def withoutBarrier(name: String) = s"call $name without barrier and without profile."

  val MapInPandasBarrier: Support = no(
    PythonCode,
    "mapInPandas with barrier or a resource profile",
    s"$Exec.python.MapInPandasExec",
    barrier,
    withoutBarrier("mapInPandas"))

  val MapInArrowBarrier: Support = no(
    PythonCode,
    "mapInArrow with barrier or a resource profile",
    s"$Exec.python.MapInArrowExec",
    barrier,
    withoutBarrier("mapInArrow"))

  /** Its class is that of any union. */
  val UnionInTurn: Support = no(
    RowByRow,
    "union of sides that are partitioned alike",
    s"$Exec.UnionExec",
    "Spark merges their partitions, and reads one side to the end of the epoch before the other.",
    "spark.conf.set(\"spark.sql.unionOutputPartitioning\", \"false\").")

  /** A range shuffle would start a job that samples its input, which never ends. Its class is that of any shuffle. */
  val RangeRepartition: Support = no(
    Partitioning,
    "repartitionByRange, orderBy",
    s"$Exec.exchange.ShuffleExchangeExec",
    "choosing the ranges needs a sample of the whole input.",
    "use repartition(n, columns), which hashes.")

  private val unsupported = Seq(
    StreamJoinWithoutEqualKeys,
    JoinWithoutEqualKeys,
    no(Joins, "join that sorts both sides", s"$Exec.joins.SortMergeJoinExec", holdsRowsBack, broadcastIt),
    no(
      Joins,
      "join that builds a hash table per partition",
      s"$Exec.joins.ShuffledHashJoinExec",
      holdsRowsBack,
      broadcastIt),
    hidden(JoinWithoutEqualKeys, s"$Exec.joins.CartesianProductExec"),
    FlatMapGroupsWithState,
    ApplyInPandasWithState,
    GroupedPython,
    hidden(GroupedPython, s"$Exec.python.FlatMapGroupsInArrowExec"),
    PythonUdtf,
    hidden(PythonUdtf, s"$Exec.python.ArrowEvalPythonUDTFExec"),
    MapInPandasBarrier,
    MapInArrowBarrier,
    Sample,
    Sort,
    Coalesce,
    Limit,
    hidden(Limit, s"$Stateful.StreamingLocalLimitExec"))

  /** The same operation with another class. */
  private def hidden(support: Support, className: String): Support =
    support.copy(group = NeverWritten, className = className)

  /** The entry for an operator that is not in the registry: it is refused. */
  private def unknown(className: String, nodeName: String) = no(
    NeverWritten,
    s"the operator $nodeName",
    className,
    "it is not known to pass rows on one by one.",
    useMicroBatch + ".")

  private val byClass = (supported ++ unsupported).map(row => row.className -> row).toMap

  val all: Seq[Support] =
    supported ++ unsupported ++ Seq(BoundedDeduplication, StreamJoinOfAnotherKind, RangeRepartition, UnionInTurn)

  def of(className: String, nodeName: String): Support = byClass.getOrElse(className, unknown(className, nodeName))

  /** The users' name of the operator; none if they never write it. */
  def documentedName(className: String): Option[String] =
    byClass.get(className).filter(_.group != NeverWritten).map(_.name)
}
