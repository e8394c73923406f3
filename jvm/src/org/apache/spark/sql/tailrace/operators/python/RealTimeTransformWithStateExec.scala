package org.apache.spark.sql.tailrace.operators.python

import scala.jdk.CollectionConverters._

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.{JobArtifactSet, TaskContext}
import org.apache.spark.api.python.{ChainedPythonFunctions, PythonEvalType}
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.encoders.ExpressionEncoder
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.TransformWithStateInPySpark.UserFacingDataType
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.python.streaming.TransformWithStateInPySparkExec
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperatorStateInfo
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinHelper.StateStoreAwareZipPartitionsHelper
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.streaming.{OutputMode, TimeMode}
import org.apache.spark.sql.types.{StructField, StructType}
import org.apache.spark.sql.vectorized.{ArrowColumnVector, ColumnarBatch}
import org.apache.spark.util.{CompletionIterator, SerializableConfiguration}
import org.apache.spark.sql.tailrace.operators.state.{IntraEpochWatermark, OpensLate}
import org.apache.spark.sql.tailrace.origin.{CurrentRow, UsesOrigins}

/**
 * `transformWithState` and `transformWithStateInPandas`: Spark's own operator with its state, files and server, but row
 * by row. Nothing is sorted, the processor is called for each row as it arrives, and timers fire within the epoch.
 *
 * The constructor equals that of Spark's class, because plan nodes are copied by reflection.
 */
class RealTimeTransformWithStateExec(
    functionExpr: Expression,
    groupingAttributes: Seq[Attribute],
    outputAttrs: Seq[Attribute],
    outputMode: OutputMode,
    timeMode: TimeMode,
    stateInfo: Option[StatefulOperatorStateInfo],
    batchTimestampMs: Option[Long],
    prevBatchTimestampMs: Option[Long],
    eventTimeWatermarkForLateEvents: Option[Long],
    eventTimeWatermarkForEviction: Option[Long],
    userFacingDataType: UserFacingDataType.Value,
    child: SparkPlan,
    isStreaming: Boolean,
    hasInitialState: Boolean,
    initialState: SparkPlan,
    initialStateGroupingAttrs: Seq[Attribute],
    initialStateSchema: StructType)
    extends TransformWithStateInPySparkExec(
      functionExpr,
      groupingAttributes,
      outputAttrs,
      outputMode,
      timeMode,
      stateInfo,
      batchTimestampMs,
      prevBatchTimestampMs,
      eventTimeWatermarkForLateEvents,
      eventTimeWatermarkForEviction,
      userFacingDataType,
      child,
      isStreaming,
      hasInitialState,
      initialState,
      initialStateGroupingAttrs,
      initialStateSchema)
    with UsesOrigins {
  import RealTimeTransformWithStateExec._

  override def nodeName: String = "RealTimeTransformWithState"
  override def requiredChildOrdering: Seq[Seq[SortOrder]] = children.map(_ => Nil)

  // Spark's rules fill in the state and the times by calling this.
  override def copy(
      functionExpr: Expression,
      groupingAttributes: Seq[Attribute],
      outputAttrs: Seq[Attribute],
      outputMode: OutputMode,
      timeMode: TimeMode,
      stateInfo: Option[StatefulOperatorStateInfo],
      batchTimestampMs: Option[Long],
      prevBatchTimestampMs: Option[Long],
      eventTimeWatermarkForLateEvents: Option[Long],
      eventTimeWatermarkForEviction: Option[Long],
      userFacingDataType: UserFacingDataType.Value,
      child: SparkPlan,
      isStreaming: Boolean,
      hasInitialState: Boolean,
      initialState: SparkPlan,
      initialStateGroupingAttrs: Seq[Attribute],
      initialStateSchema: StructType): TransformWithStateInPySparkExec =
    new RealTimeTransformWithStateExec(
      functionExpr,
      groupingAttributes,
      outputAttrs,
      outputMode,
      timeMode,
      stateInfo,
      batchTimestampMs,
      prevBatchTimestampMs,
      eventTimeWatermarkForLateEvents,
      eventTimeWatermarkForEviction,
      userFacingDataType,
      child,
      isStreaming,
      hasInitialState,
      initialState,
      initialStateGroupingAttrs,
      initialStateSchema)

  // The open epoch of a real-time query is not in the offset log, and Spark's Python operator does not pass that on.
  override def validateAndWriteStateSchema(
      hadoopConf: Configuration,
      batchId: Long,
      stateSchemaVersion: Int,
      info: StatefulOperatorStateInfo,
      stateSchemaDir: Path,
      session: SparkSession,
      operatorStateMetadataVersion: Int,
      stateStoreEncodingFormat: String,
      isRealTimeMode: Boolean): List[StateSchemaValidationResult] =
    super.validateAndWriteStateSchema(
      hadoopConf,
      batchId,
      stateSchemaVersion,
      info,
      stateSchemaDir,
      session,
      operatorStateMetadataVersion,
      stateStoreEncodingFormat,
      isRealTimeMode = true)

  /** True if timers depend on the clock and not on a watermark. */
  def firesTimersByClock: Boolean = timeMode == TimeMode.ProcessingTime()

  /** Lets the timers of the epoch fire when all of its rows have been processed. Copies of the node keep it. */
  def fireTimersAfterRows(): Unit = setTagValue(TimersAfterRows, ())

  private val function = functionExpr.asInstanceOf[PythonUDF]
  private val functions = Seq((ChainedPythonFunctions(Seq(function.func)), function.resultId.id))
  private val evalType = (userFacingDataType == UserFacingDataType.PANDAS, hasInitialState) match {
    case (true, false) => PythonEvalType.SQL_TRANSFORM_WITH_STATE_PANDAS_UDF
    case (true, true) => PythonEvalType.SQL_TRANSFORM_WITH_STATE_PANDAS_INIT_STATE_UDF
    case (false, false) => PythonEvalType.SQL_TRANSFORM_WITH_STATE_PYTHON_ROW_UDF
    case (false, true) => PythonEvalType.SQL_TRANSFORM_WITH_STATE_PYTHON_ROW_INIT_STATE_UDF
  }
  private val keySchema = StructType(groupingAttributes.map(key => StructField(key.name, key.dataType, key.nullable)))
  // Spark copies the node many times while it plans an epoch, and only the last copy runs.
  private lazy val keyEncoder = ExpressionEncoder(keySchema).resolveAndBind().asInstanceOf[ExpressionEncoder[Any]]
  private val format = ArrowFormat.of(conf)
  private val limits = PythonLimits.of(conf, conf.arrowMaxRecordsPerBatch)
  private val jobArtifacts = JobArtifactSet.getCurrentJobArtifactState.map(_.uuid)

  override protected def doExecute(): RDD[InternalRow] = {
    metrics
    keyEncoder
    validateStateStoreProvider(isStreaming)
    if (hasInitialState) withInitialState() else withoutInitialState()
  }

  /** Set if event-time timers fire within an epoch. */
  private lazy val withinEpoch: Option[IntraEpochWatermark] =
    if (timeMode == TimeMode.EventTime()) IntraEpochWatermark.of(Seq(child), conf) else None

  private def withoutInitialState(): RDD[InternalRow] = {
    val ((input, partitions), moving) = (IntraEpochWatermark.execute(child), withinEpoch)
    val timersUpTo = onlyTimersUpTo
    input.mapPartitionsWithStateStore[InternalRow](
      getStateInfo,
      schemaForKeyRow,
      schemaForValueRow,
      NoPrefixKeyStateEncoderSpec(schemaForKeyRow),
      session.sqlContext.sessionState,
      Some(session.streams.stateStoreCoordinator),
      useColumnFamilies = true,
      useMultipleValuesPerKey = true) { (store: StateStore, rows: Iterator[InternalRow]) =>
      process(store, rows, Iterator.empty, moving, partitions, timersUpTo)
    }
  }

  private def withInitialState(): RDD[InternalRow] = {
    // Computed before the epoch's job: Spark cannot run a regular shuffle in the same job as a streaming one.
    val initial = initialState.execute().map(_.copy()).localCheckpoint()
    initial.count()
    val storeConf = new StateStoreConf(session.sqlContext.sessionState.conf)
    val hadoop = SerializableConfiguration.broadcast(sparkContext, session.sessionState.newHadoopConf())
    val ((input, partitions), moving) = (IntraEpochWatermark.execute(child), withinEpoch)
    val timersUpTo = onlyTimersUpTo
    input.stateStoreAwareZipPartitions(
      initial,
      getStateInfo,
      storeNames = Seq(),
      session.streams.stateStoreCoordinator) { (partition, rows, initialRows) =>
      val store = StateStore.get(
        StateStoreProviderId(getStateInfo, partition, StateStoreId.DEFAULT_STORE_NAME),
        schemaForKeyRow,
        schemaForValueRow,
        NoPrefixKeyStateEncoderSpec(schemaForKeyRow),
        version = getStateInfo.storeVersion,
        stateStoreCkptId = getStateInfo.getStateStoreCkptId(partition).map(_.head),
        stateSchemaBroadcast = getStateInfo.stateSchemaMetadata,
        useColumnFamilies = true,
        storeConf = storeConf,
        hadoopConf = hadoop.value.value)
      process(store, rows, initialRows, moving, partitions, timersUpTo)
    }
  }

  /** If timers fire after the rows: only those that were due when the epoch began, as in micro-batch. */
  private def onlyTimersUpTo: Option[Long] =
    if (getTagValue(TimersAfterRows).isDefined && firesTimersByClock) batchTimestampMs else None

  private def process(
      store: StateStore,
      rows: Iterator[InternalRow],
      initialRows: Iterator[InternalRow],
      moving: Option[IntraEpochWatermark],
      partitions: Range,
      timersUpTo: Option[Long]): Iterator[InternalRow] = {
    val context = TaskContext.get()
    val watermark = watermarkOfTask(moving, partitions)
    val timers = new TimerSchedule(timeMode, watermark, timersUpTo)
    val handle = new TimerTrackingHandle(
      store,
      getStateInfo.queryRunId,
      keyEncoder,
      timeMode,
      batchTimestampMs,
      prevBatchTimestampMs,
      metrics,
      timers,
      context)
    val data = GroupedColumns.of(groupingAttributes, child.output)
    val initial = GroupedColumns.of(initialStateGroupingAttrs, initialState.output)
    val inTimeBySpark = watermarkPredicateForDataForLateEvents match {
      case Some(isLate) if timeMode == TimeMode.EventTime() => applyRemovingRowsOlderThanWatermark(rows, isLate)
      case _ => rows
    }
    val rowsLate = longMetric("numRowsDroppedByWatermark")
    val inTime = watermark.dropLate(inTimeBySpark, CurrentRow.ofThisTask(), onLate = () => rowsLate += 1)
    val ofData = UnsafeProjection.create(data.columns, child.output)
    val (input, schema, offsets) =
      if (!hasInitialState) {
        (inTime.map(ofData(_)), data.schema, data.offsets)
      } else {
        val ofInitial = UnsafeProjection.create(initial.columns, initialState.output)
        val both = new StructType().add("inputData", data.schema).add("initState", initial.schema)
        val one =
          initialRows.map(row => InternalRow(null, ofInitial(row))) ++ inTime.map(row => InternalRow(ofData(row), null))
        (one, both, data.offsets ++ initial.offsets)
      }

    def connect(): WorkerConnection = {
      val runner = new StatefulRunner(
        functions,
        evalType,
        offsets,
        schema,
        handle,
        format,
        pythonMetrics,
        jobArtifacts,
        keySchema,
        batchTimestampMs,
        eventTimeWatermarkForEviction,
        watermark)
      val protocol = new ArrowProtocol(
        schema,
        format,
        answersEachBatch = false,
        arguments = identity,
        results = resultsOf,
        runner.accumulators,
        pythonMetrics)
      WorkerConnection(runner, protocol)
    }

    val exchange = new WorkerExchange(
      input,
      () => connect(),
      keepsRows = false,
      repeatable = false,
      limits,
      context,
      // The state is closed as soon as the task has failed.
      stopsInOrder = false,
      ticks = timers,
      awaitsState = () => isAwaited(store))
    // Stop the worker first: without its state it would log errors.
    val stopServer = handle.stopReaders
    handle.stopReaders = () => {
      exchange.close()
      stopServer()
    }
    val toUnsafe = UnsafeProjection.create(output, output)
    val (origin, outputRows) = (output.length, longMetric("numOutputRows"))
    val results = exchange.flatMap(_.rows).map { row =>
      exchange.isResultOf(row.getInt(origin))
      outputRows += 1
      toUnsafe(row)
    }
    CompletionIterator[InternalRow, Iterator[InternalRow]](results, commit(store, handle))
  }

  private def isAwaited(store: StateStore): Boolean = store match {
    case late: OpensLate => late.isBeingOpened
    case _ => false
  }

  private def watermarkOfTask(moving: Option[IntraEpochWatermark], partitions: Range): ProcessorWatermark =
    new ProcessorWatermark(
      eventTimeWatermarkForEviction,
      for (within <- moving; column <- within.times.head)
        yield new MovingWatermarkInput(
          within.inTask(Seq(partitions)),
          column,
          IntraEpochWatermark.lateness(child.output, _, conf)))

  /** The output columns, followed by the index of the row in the batch that the result came from. */
  private def resultsOf(batch: ColumnarBatch): Iterator[InternalRow] = {
    val struct = batch.column(0).asInstanceOf[ArrowColumnVector]
    val flat = new ColumnarBatch(output.indices.map(struct.getChild).toArray :+ batch.column(1))
    flat.setNumRows(batch.numRows())
    flat.rowIterator().asScala
  }

  private def commit(store: StateStore, handle: TimerTrackingHandle): Unit = {
    longMetric("allRemovalsTimeMs") += timeTakenMs(handle.doTtlCleanup())
    longMetric("commitTimeMs") += timeTakenMs(store.commit())
    setStoreMetrics(store, isStreaming)
    setOperatorMetrics()
  }
}

private object RealTimeTransformWithStateExec {
  private val TimersAfterRows = TreeNodeTag[Unit]("tailrace.timersAfterRows")
}
