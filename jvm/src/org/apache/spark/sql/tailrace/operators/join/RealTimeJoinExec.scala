package org.apache.spark.sql.tailrace.operators.join

import org.apache.hadoop.conf.Configuration

import org.apache.spark.TaskContext
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Expression, Literal, Predicate, UnsafeProjection}
import org.apache.spark.sql.catalyst.plans.{JoinType, LeftSemi}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperatorStateInfo
import org.apache.spark.sql.execution.streaming.operators.stateful.join.{
  JoinStateManagerStoreGenerator, StreamingSymmetricHashJoinExec, SymmetricHashJoinStateManager
}
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinHelper._
import org.apache.spark.sql.execution.streaming.state.StateStoreConf
import org.apache.spark.sql.internal.{SessionState, SQLConf}
import org.apache.spark.sql.streaming.OutputMode
import org.apache.spark.util.SerializableConfiguration
import org.apache.spark.sql.tailrace.operators.input.{ThreadFedInput, OriginTrackedRows}
import org.apache.spark.sql.tailrace.operators.state.{
  EpochTakeOver, IntraEpochWatermark, StateScans, StateTakeOver, TakesOverState
}
import org.apache.spark.sql.tailrace.origin.{CurrentRow, RowIdentity, UsesOrigins}

/**
 * Spark's join of two streams, except that it reads both sides at once: a match is emitted as soon as its second row
 * has arrived. The state, its layout and lifetime, and the metrics are Spark's, so a checkpoint moves between
 * micro-batch and Real-Time Mode.
 *
 * @param takeOver if the epoch is started ahead
 */
final class RealTimeJoinExec(
    leftKeys: Seq[Expression],
    rightKeys: Seq[Expression],
    joinType: JoinType,
    condition: JoinConditionSplitPredicates,
    stateInfo: Option[StatefulOperatorStateInfo],
    eventTimeWatermarkForLateEvents: Option[Long],
    eventTimeWatermarkForEviction: Option[Long],
    stateWatermarkPredicates: JoinStateWatermarkPredicates,
    stateFormatVersion: Int,
    left: SparkPlan,
    right: SparkPlan,
    outputMode: Option[OutputMode],
    val takeOver: Option[EpochTakeOver])
    extends StreamingSymmetricHashJoinExec(
      leftKeys,
      rightKeys,
      joinType,
      condition,
      stateInfo,
      eventTimeWatermarkForLateEvents,
      eventTimeWatermarkForEviction,
      stateWatermarkPredicates,
      stateFormatVersion,
      left,
      right,
      outputMode)
    with UsesOrigins
    with TakesOverState {
  import SideTimes.ordinalOfWatermark

  override def nodeName: String = "RealTimeJoin"
  override def rowIdentity: RowIdentity = RowIdentity.Content

  /** Set if old rows are removed within an epoch. */
  private lazy val removesEarly: Option[IntraEpochWatermark] = IntraEpochWatermark.of(Seq(left, right), conf)

  override def usesOrigins: Boolean = removesEarly.isDefined

  override protected def doExecute(): RDD[InternalRow] = {
    val coordinator = session.sessionState.streamingQueryManager.stateStoreCoordinator
    metrics // created on the driver, before tasks use them
    val storeConf = new StateStoreConf(conf)
    val hadoopConf = SerializableConfiguration.broadcast(
      sparkContext,
      SessionState.newHadoopConf(sparkContext.hadoopConfiguration, conf))
    val (leftInput, leftPartitions) = IntraEpochWatermark.execute(left)
    val (rightInput, rightPartitions) = IntraEpochWatermark.execute(right)
    val early = removesEarly
    OriginTrackedRows.of(leftInput).stateStoreAwareZipPartitions(
      OriginTrackedRows.of(rightInput),
      getStateInfo,
      stateStoreNames,
      coordinator) { (partition, leftRows, rightRows) =>
      val inputs = Seq(leftRows, rightRows).map(_.asInstanceOf[OriginTrackedRows])
      val removal = early.map { within =>
        new EarlyRemoval(within.inTask(Seq(leftPartitions, rightPartitions), takeOver), within.times, timesAt)
      }
      join(partition, inputs, removal, storeConf, hadoopConf.value.value)
    }
  }

  private def timesAt(watermarkMs: Long): JoinTimes = JoinTimes(
    late = Seq(left, right).map(side => IntraEpochWatermark.lateness(side.output, watermarkMs, conf)),
    removal = removalAt(Some(watermarkMs)))

  private def removalAt(watermarkMs: Option[Long]): JoinStateWatermarkPredicates = getStateWatermarkPredicates(
    left.output,
    right.output,
    leftKeys,
    rightKeys,
    condition.full,
    eventTimeWatermarkForEviction = watermarkMs,
    eventTimeWatermarkForLateEvents = None,
    useFirstEventTimeColumn = !conf.getConf(SQLConf.STATEFUL_OPERATOR_ALLOW_MULTIPLE))

  private def join(
      partition: Int,
      inputs: Seq[OriginTrackedRows],
      early: Option[EarlyRemoval],
      storeConf: StateStoreConf,
      hadoopConf: Configuration): Iterator[InternalRow] = {
    val bothSides = left.output ++ right.output
    val matches = Predicate.create(condition.bothSides.getOrElse(Literal(true)), bothSides)
    val before = takeOver.map(_.ofState(getStateInfo.operatorId, partition))
    lazy val checkpoints = checkpointsOf(partition, before)
    val stores = new JoinStateManagerStoreGenerator()
    val skippedNulls = Option.when(storeConf.skipNullsForStreamStreamJoins)(longMetric("skippedNullValueCount"))
    val watermarkInKeys = ordinalOfWatermark(leftKeys).orElse(ordinalOfWatermark(rightKeys))

    def sideOf(side: JoinSide): JoinSideState = {
      val (input, keys, filter, ids) = side match {
        case LeftSide =>
          (left.output, leftKeys, condition.leftSideOnly, checkpoints.left)
        case RightSide =>
          (right.output, rightKeys, condition.rightSideOnly, checkpoints.right)
      }
      val state = SymmetricHashJoinStateManager(
        joinSide = side,
        inputValueAttributes = input,
        joinKeys = keys,
        stateInfo = stateInfo,
        storeConf = storeConf,
        hadoopConf = hadoopConf,
        partitionId = partition,
        keyToNumValuesStateStoreCkptId = ids.keyToNumValues,
        keyWithIndexToValueStateStoreCkptId = ids.keyWithIndexToValue,
        stateFormatVersion = stateFormatVersion,
        skippedNullValueCount = skippedNulls,
        joinStoreGenerator = stores,
        joinKeyOrdinalForWatermark = watermarkInKeys)
      new JoinSideState(
        state,
        keyOf = UnsafeProjection.create(keys, input),
        mayMatch = Predicate.create(filter.getOrElse(Literal(true)), input),
        isLate = SideTimes.lateness(input, eventTimeWatermarkForLateEvents, conf),
        input)
    }

    lazy val task = new JoinTask(
      joinType,
      sideOf(LeftSide),
      sideOf(RightSide),
      left.output.length,
      right.output.length,
      matches,
      new StateScans(TaskContext.get()),
      stateFormatVersion)
    val projection =
      if (joinType == LeftSemi) UnsafeProjection.create(output, output) else UnsafeProjection.create(bothSides, output)
    val outputRow = CurrentRow.ofThisTask()
    val arrivals = new ThreadFedInput(inputs, "join", TaskContext.get())
    val (rowsOut, rowsLate) = (longMetric("numOutputRows"), longMetric("numRowsDroppedByWatermark"))
    lazy val removalAtEnd =
      before.fold(stateWatermarkPredicates)(known => removalAt(known.awaitEvictionWatermark()))
    def onEnd(times: WorkTimes): Unit = {
      early.foreach(longMetric("numRemovedStateRows") += _.removed)
      commit(task, removalAtEnd, times)
    }
    new JoinedRows(
      () => task,
      () => removalAtEnd,
      early,
      arrivals,
      outputRow,
      onLate = () => rowsLate += 1,
      onEnd).map { row =>
      rowsOut += 1
      projection(row)
    }
  }

  /** Waits for the state if the epoch is started ahead. */
  private def checkpointsOf(partition: Int, before: Option[StateTakeOver]): JoinStateStoreCheckpointId =
    before match {
      case Some(state) =>
        val ofThisPartition = Some(Array(state.awaitCheckpoints()))
        SymmetricHashJoinStateManager.getStateStoreCheckpointIds(partitionId = 0, ofThisPartition, hasOneStore)
      case None =>
        SymmetricHashJoinStateManager.getStateStoreCheckpointIds(partition, getStateInfo.stateStoreCkptIds, hasOneStore)
    }

  /** After the last row: removes what no row can match any more, and commits the state. */
  private def commit(task: JoinTask, removal: JoinStateWatermarkPredicates, times: WorkTimes): Unit = {
    longMetric("allUpdatesTimeMs") += times.updatesMs
    longMetric("numRemovedStateRows") += task.removedByMatches
    longMetric("allRemovalsTimeMs") += times.outerRowsMs + timeTakenMs {
      longMetric("numRemovedStateRows") += task.removeTheRest(removal)
    }
    longMetric("commitTimeMs") += timeTakenMs {
      task.commit(hasOneStore)
      val ofStores = task.storeMetrics(hasOneStore)
      if (StatefulOperatorStateInfo.enableStateStoreCheckpointIds(conf)) {
        setStateStoreCheckpointInfo(task.checkpointInfo(hasOneStore))
      }
      longMetric("numUpdatedStateRows") += task.updatedRows
      longMetric("numTotalStateRows") += ofStores.numKeys
      longMetric("stateMemory") += ofStores.memoryUsedBytes
      setStoreCustomMetrics(ofStores.customMetrics)
      setStoreInstanceMetrics(ofStores.instanceMetrics)
    }
    setOperatorMetrics(numStateStoreInstances = if (hasOneStore) 1 else stateStoreNames.length)
  }

  // Since version 3, both sides are column families of one store.
  private def hasOneStore: Boolean = stateFormatVersion >= 3

  override def takingOver(epoch: EpochTakeOver): SparkPlan = RealTimeJoinExec.of(this, left, right, Some(epoch))

  override protected def withNewChildrenInternal(
      newLeft: SparkPlan,
      newRight: SparkPlan): StreamingSymmetricHashJoinExec =
    RealTimeJoinExec.of(this, newLeft, newRight, takeOver)

  override protected def otherCopyArgs: Seq[AnyRef] = Seq(takeOver)

  // Spark does not replace a node by one that is equal to it.
  override def canEqual(other: Any): Boolean = other.isInstanceOf[RealTimeJoinExec]
  override def equals(other: Any): Boolean = canEqual(other) && super.equals(other)
  override def hashCode(): Int = super.hashCode()
}

object RealTimeJoinExec {

  /** The same join with other children. */
  def of(
      join: StreamingSymmetricHashJoinExec,
      left: SparkPlan,
      right: SparkPlan,
      takeOver: Option[EpochTakeOver] = None): RealTimeJoinExec = {
    val replaced = new RealTimeJoinExec(
      join.leftKeys,
      join.rightKeys,
      join.joinType,
      join.condition,
      join.stateInfo,
      join.eventTimeWatermarkForLateEvents,
      join.eventTimeWatermarkForEviction,
      join.stateWatermarkPredicates,
      join.stateFormatVersion,
      left,
      right,
      join.outputMode,
      takeOver)
    replaced.copyTagsFrom(join)
    replaced
  }
}
