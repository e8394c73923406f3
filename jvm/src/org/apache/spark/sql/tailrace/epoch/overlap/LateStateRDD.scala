package org.apache.spark.sql.tailrace.epoch.overlap

import org.apache.spark.{Partition, TaskContext}
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.streaming.state.{StateStore, StateStoreRDD}
import org.apache.spark.sql.tailrace.epoch.context.EpochId
import org.apache.spark.sql.tailrace.internals.{StateStoreOpening, StateStoreRdd}

/**
 * The rows of a stateful operator in an epoch that takes over. The tasks connect to the shuffle and build the operator
 * at once. They wait for their state when they first use it.
 *
 * @param input  the operator's
 * @param update the operator itself
 */
private[overlap] final class LateStateRDD(
    input: RDD[InternalRow],
    update: StateStoreRdd.UpdateState,
    opening: StateStoreOpening,
    id: EpochId)
    extends RDD[InternalRow](input) {
  override protected def getPartitions: Array[Partition] = input.partitions

  override def compute(partition: Partition, context: TaskContext): Iterator[InternalRow] = {
    // First, as in Spark: it connects to the tasks that send the rows.
    val rows = input.iterator(partition, context)
    // Looked up now: it is gone when the epoch before is forgotten.
    val before = TakenOver.from(id)
    val store = new LateStateStore(
      opening.idOf(partition.index),
      opening.version,
      () => openedFrom(before, partition.index))
    update(store, rows)
  }

  private def openedFrom(before: HandOver, partition: Int): StateStore = {
    val key = HandOverKey.State(opening.operator, partition)
    opening.open(partition, before.take(key, TakenOver.cancellationOfThisTask()).asInstanceOf[String])
  }
}

private[overlap] object LateStateRDD {
  /** In a plan that was made ahead. Fails if Spark runs the operator in another way than is known. */
  def of(rows: RDD[InternalRow], id: EpochId): LateStateRDD = rows match {
    case state: StateStoreRDD[_, _] =>
      new LateStateRDD(StateStoreRdd.inputOf(state), StateStoreRdd.updateOf(state), StateStoreRdd.openingOf(state), id)
    case other => throw new IllegalStateException(s"$other does not keep the state of a stateful operator")
  }
}
