package org.apache.spark.sql.tailrace.epoch.overlap

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.streaming.operators.stateful.StateStoreWriter
import org.apache.spark.sql.tailrace.internals.EvictionWatermark

/**
 * The watermark by which an operator removes state at the end of an epoch that takes over. It depends on the last row
 * of the epoch before, so the plan that was made ahead does not have it. The query's own plan does, long before the
 * epoch ends: the driver hands it to the tasks when it adopts them.
 *
 * Which rows are late is known ahead: that is decided by the watermark of the epoch before.
 *
 * @param operator in a task, the copy that runs there: both are in the same closure
 */
private[overlap] final case class LateWatermark(operator: SparkPlan, number: Long) {

  /** The rows. When they are over, the operator has its watermark. */
  def bindAfter(rows: Iterator[InternalRow], before: HandOver, task: Int): Iterator[InternalRow] =
    new Iterator[InternalRow] {
      private var isBound = false

      override def hasNext: Boolean = {
        val more = rows.hasNext
        if (!more && !isBound) {
          bind(before, task)
          isBound = true
        }
        more
      }

      override def next(): InternalRow = rows.next()
    }

  private def bind(before: HandOver, task: Int): Unit = {
    val left = before.take(HandOverKey.Watermark(number, task), TakenOver.cancellationOfThisTask())
    EvictionWatermark.set(operator, left.asInstanceOf[Option[Long]])
  }
}

private[overlap] object LateWatermark {
  def of(operator: StateStoreWriter): Option[LateWatermark] =
    Option.when(EvictionWatermark.canBeSetLate(operator))(LateWatermark(operator, operator.getStateInfo.operatorId))

  /** On the driver: the watermark of this operator of the query's own plan is that of the tasks that took over. */
  def leave(operator: StateStoreWriter, before: HandOver): Unit = {
    val (state, watermark) = (operator.getStateInfo, EvictionWatermark.of(operator))
    (0 until state.numPartitions).foreach { partition =>
      before.leave(HandOverKey.Watermark(state.operatorId, partition), watermark)
    }
  }
}
