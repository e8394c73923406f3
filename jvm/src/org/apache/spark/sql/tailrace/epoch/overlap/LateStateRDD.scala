package org.apache.spark.sql.tailrace.epoch.overlap

import org.apache.spark.{Partition, TaskContext, TaskContextImpl}
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.streaming.state.{StateStore, StateStoreRDD}
import org.apache.spark.sql.tailrace.epoch.context.EpochId
import org.apache.spark.sql.tailrace.internals.{StateStoreOpening, StateStoreRdd}
import org.apache.spark.sql.tailrace.operators.state.TaskPart

/**
 * The rows of a stateful operator in an epoch that takes over. The tasks connect to the shuffle and build the operator
 * at once. They wait for their state when they first use it.
 *
 * @param input     the operator's
 * @param update    the operator itself
 * @param watermark if the operator removes state by one
 */
private[overlap] final class LateStateRDD(
    input: RDD[InternalRow],
    update: StateStoreRdd.UpdateState,
    opening: StateStoreOpening,
    watermark: Option[LateWatermark],
    id: EpochId)
    extends RDD[InternalRow](input) {
  override protected def getPartitions: Array[Partition] = input.partitions

  override def compute(partition: Partition, context: TaskContext): Iterator[InternalRow] = {
    // First, as in Spark: it connects to the tasks that send the rows.
    val rows = input.iterator(partition, context)
    // Looked up now: it is gone when the epoch before is forgotten.
    val before = TakenOver.from(id)
    val part = partOfStore(context)
    val store = new LateStateStore(
      opening.idOf(partition.index),
      opening.version,
      () => openedFrom(before, partition.index, part))
    update(store, watermark.fold(rows)(_.bindAfter(rows, before, partition.index)))
  }

  /**
   * Spark opens a store before its operator is built. So when the task ends, all that the operator has started is
   * stopped before the store is closed. The store that is opened late gets its listeners at the same place.
   */
  private def partOfStore(task: TaskContext): TaskContextImpl = {
    val part = TaskPart.of(task)
    task.addTaskFailureListener((_: TaskContext, failure: Throwable) => part.markTaskFailed(failure))
    task.addTaskCompletionListener[Unit](_ => part.markTaskCompleted(None))
    part
  }

  private def openedFrom(before: HandOver, partition: Int, part: TaskContextImpl): StateStore = {
    val key = HandOverKey.State(opening.operator, partition)
    before.take(key, TakenOver.cancellationOfThisTask()) match {
      case Array(checkpoint: String) => TaskPart.in(part)(opening.open(partition, checkpoint))
      case other => throw new IllegalStateException(s"$other is not one checkpoint of partition $partition")
    }
  }
}

private[overlap] object LateStateRDD {
  /** In a plan that was made ahead. Fails if Spark runs the operator in another way than is known. */
  def of(rows: RDD[InternalRow], watermark: Option[LateWatermark], id: EpochId): LateStateRDD = rows match {
    case state: StateStoreRDD[_, _] => new LateStateRDD(
        StateStoreRdd.inputOf(state),
        StateStoreRdd.updateOf(state),
        StateStoreRdd.openingOf(state),
        watermark,
        id)
    case other => throw new IllegalStateException(s"$other does not keep the state of a stateful operator")
  }
}
