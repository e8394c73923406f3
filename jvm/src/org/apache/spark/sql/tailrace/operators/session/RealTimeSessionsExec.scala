package org.apache.spark.sql.tailrace.operators.session

import org.apache.spark.TaskContext
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.analysis.WidenStatefulOpNullability
import org.apache.spark.sql.catalyst.expressions.{Attribute, UnsafeRow}
import org.apache.spark.sql.catalyst.streaming.InternalOutputModes.{Append, Update}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.aggregate.MergingSessionsExec
import org.apache.spark.sql.execution.streaming.operators.stateful._
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.streaming.{OutputMode, StateOperatorProgress}
import org.apache.spark.util.CompletionIterator
import org.apache.spark.sql.tailrace.operators.state.{
  EpochTakeOver, IntraEpochWatermark, OpensLate, StateScans, TakesOverState
}
import org.apache.spark.sql.tailrace.origin.{CurrentRow, UsesOrigins}
import org.apache.spark.sql.tailrace.plan.SessionStatus

/**
 * Spark's session windows, row by row. Spark sorts the rows of an epoch together with the sessions in the state; this
 * operator adds each row to its session, or merges several sessions, when the row arrives. The state, its layout and
 * the metrics are Spark's, so a checkpoint moves between micro-batch and Real-Time Mode.
 *
 * In output mode `update` each row emits its session as it is then. Closed sessions are emitted as well if the query
 * asks for the [[SessionStatus]]. In `append` only closed sessions are emitted. Sessions close at the end of an epoch,
 * or earlier by [[EarlyClosing]].
 *
 * @param merging  how sessions are merged
 * @param takeOver if the epoch is started ahead
 */
final class RealTimeSessionsExec(
    keyWithoutSessionExpressions: Seq[Attribute],
    sessionExpression: Attribute,
    stateInfo: Option[StatefulOperatorStateInfo],
    outputMode: Option[OutputMode],
    eventTimeWatermarkForLateEvents: Option[Long],
    eventTimeWatermarkForEviction: Option[Long],
    stateFormatVersion: Int,
    val merging: MergingSessionsExec,
    child: SparkPlan,
    val takeOver: Option[EpochTakeOver])
    extends SessionWindowStateStoreSaveExec(
      keyWithoutSessionExpressions,
      sessionExpression,
      stateInfo,
      outputMode,
      eventTimeWatermarkForLateEvents,
      eventTimeWatermarkForEviction,
      stateFormatVersion,
      child)
    with UsesOrigins
    with TakesOverState {

  private val stateManager = StreamingSessionWindowStateManager.createStateManager(
    keyWithoutSessionExpressions,
    sessionExpression,
    child.output,
    stateFormatVersion)

  override def nodeName: String = "RealTimeSessions"

  /** Set if sessions close within an epoch. */
  private lazy val closesEarly: Option[IntraEpochWatermark] = IntraEpochWatermark.of(Seq(child), conf)

  override def usesOrigins: Boolean = closesEarly.isDefined

  override protected def doExecute(): RDD[InternalRow] = {
    metrics // created on the driver, before tasks use them
    val keySchema = WidenStatefulOpNullability.widenStateSchema(stateManager.getStateKeySchema)
    val (rows, partitions) = IntraEpochWatermark.execute(child)
    rows.mapPartitionsWithStateStore(
      getStateInfo,
      keySchema,
      WidenStatefulOpNullability.widenStateSchema(stateManager.getStateValueSchema),
      PrefixKeyScanStateEncoderSpec(keySchema, stateManager.getNumColsForPrefixKey),
      session.sessionState,
      Some(session.streams.stateStoreCoordinator))(sessionsOf(statusColumn, closesEarly, partitions))
  }

  /** The column of the session's status, if the query asks for it. */
  private def statusColumn: Option[Int] = merging.aggregateExpressions.map(_.aggregateFunction).collectFirst {
    case status: SessionStatus => child.output.indexWhere(_.exprId == status.inputAggBufferAttributes.head.exprId)
  }

  private def sessionsOf(statusColumn: Option[Int], early: Option[IntraEpochWatermark], partitions: Range)(
      store: StateStore,
      rows: Iterator[InternalRow]): Iterator[InternalRow] = {
    val window = new WindowColumn(sessionExpression, child.output)
    lazy val sessions = new TaskSessions(
      store,
      scansOf(store),
      stateManager,
      keyWithoutSessionExpressions,
      window,
      child.output,
      mergerOfTask(),
      statusColumn)
    val (current, rowsOut, rowsLate) =
      (CurrentRow.ofThisTask(), longMetric("numOutputRows"), longMetric("numRowsDroppedByWatermark"))
    val results = new SessionResults(
      sessions,
      emitsUpdates = outputMode.contains(Update),
      emitsClosed = outputMode.contains(Append) || statusColumn.isDefined,
      for (within <- early; time <- within.times.head)
        yield new EarlyClosing(within.inTask(Seq(partitions), takeOver), time, current, window),
      current,
      onLate = () => rowsLate += 1)
    val inTime = watermarkPredicateForDataForLateEvents.fold(rows)(applyRemovingRowsOlderThanWatermark(rows, _))
    CompletionIterator[InternalRow, Iterator[InternalRow]](
      results.of(inTime.asInstanceOf[Iterator[UnsafeRow]], isClosedAtEnd).map { row =>
        rowsOut += 1
        row
      },
      commit(store, sessions, results))
  }

  /** The store must be open: a scan has a task context of its own, and is freed before the store is closed. */
  private def scansOf(store: StateStore): StateScans = {
    store match {
      case late: OpensLate => late.open()
      case _ =>
    }
    new StateScans(TaskContext.get())
  }

  // Asked when the input is over: in an epoch that is started ahead, the watermark is not known before.
  private def isClosedAtEnd: Option[UnsafeRow => Boolean] =
    watermarkPredicateForDataForEviction.map(predicate => predicate.eval(_))

  private def commit(store: StateStore, sessions: TaskSessions, results: SessionResults): Unit = {
    longMetric("allUpdatesTimeMs") += results.workedMs
    longMetric("numUpdatedStateRows") += sessions.updated
    longMetric("numRemovedStateRows") += sessions.removed
    longMetric("commitTimeMs") += timeTakenMs(store.commit())
    setStoreMetrics(store)
    setOperatorMetrics()
  }

  private def mergerOfTask(): SessionMerger = new SessionMerger(
    TaskContext.getPartitionId(),
    merging.groupingExpressions,
    child.output,
    merging.aggregateExpressions,
    merging.aggregateAttributes,
    merging.resultExpressions,
    windowInGrouping = merging.groupingExpressions.indexWhere(_.exprId == sessionExpression.exprId))

  /** In Spark's plan another operator drops late rows and reports them. Here it is this one. */
  override def getProgress(): StateOperatorProgress = {
    val progress = super.getProgress()
    progress.copy(
      newNumRowsUpdated = progress.numRowsUpdated,
      newNumRowsDroppedByWatermark = longMetric("numRowsDroppedByWatermark").value,
      newNumRowsRemoved = progress.numRowsRemoved)
  }

  override def takingOver(epoch: EpochTakeOver): SparkPlan = RealTimeSessionsExec.of(this, merging, child, Some(epoch))

  override protected def withNewChildInternal(newChild: SparkPlan): SparkPlan =
    RealTimeSessionsExec.of(this, merging, newChild, takeOver)

  // Spark does not replace a node by one that is equal to it.
  override def canEqual(other: Any): Boolean = other.isInstanceOf[RealTimeSessionsExec]
  override def equals(other: Any): Boolean = canEqual(other) && super.equals(other)
  override def hashCode(): Int = super.hashCode()
}

object RealTimeSessionsExec {

  /** The same operator with another child. */
  def of(
      save: SessionWindowStateStoreSaveExec,
      merging: MergingSessionsExec,
      rows: SparkPlan,
      takeOver: Option[EpochTakeOver] = None): RealTimeSessionsExec = {
    val replaced = new RealTimeSessionsExec(
      save.keyWithoutSessionExpressions,
      save.sessionExpression,
      save.stateInfo,
      save.outputMode,
      save.eventTimeWatermarkForLateEvents,
      save.eventTimeWatermarkForEviction,
      save.stateFormatVersion,
      merging,
      rows,
      takeOver)
    replaced.copyTagsFrom(save)
    replaced
  }
}
