package org.apache.spark.sql.tailrace.operators.state

import scala.util.Try

import org.apache.spark.TaskContext
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression, Literal, SortOrder, UnsafeProjection}
import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.execution.{ObjectOperator, SparkPlan, UnaryExecNode}
import org.apache.spark.sql.tailrace.operators.input.{ThreadFedInput, OriginTrackedRows}
import org.apache.spark.sql.tailrace.origin.CurrentRow

/** Below `transformWithState`: passes its rows, and emits a tick at intervals while no row comes; see [[Ticks]]. */
case class IdleTicksExec(child: SparkPlan, keyDeserializer: Expression, keys: Seq[Attribute]) extends UnaryExecNode {
  override def output: Seq[Attribute] = child.output
  override def outputPartitioning: Partitioning = child.outputPartitioning
  override def outputOrdering: Seq[SortOrder] = child.outputOrdering
  override def nodeName: String = "IdleTicks"
  override protected def stringArgs: Iterator[Any] = Iterator.empty

  override protected def doExecute(): RDD[InternalRow] = {
    val (columns, ownKeys, toKey) = (output, keys, keyDeserializer)
    OriginTrackedRows.of(child.execute()).mapPartitionsInternal { rows =>
      val arrivals = new ThreadFedInput(Seq(rows.asInstanceOf[OriginTrackedRows]), "timers", TaskContext.get())
      new RowsAndTicks(arrivals, IdleTicksExec.emptyRow(columns, ownKeys, toKey))
    }
  }

  override protected def withNewChildInternal(newChild: SparkPlan): SparkPlan = copy(child = newChild)
}

private[tailrace] object IdleTicksExec {
  /**
   * A row of zeros and empty strings. Spark deserializes a row's key before it calls the processor. If that fails for
   * this row, there are no ticks until the first row has come.
   */
  def emptyRow(columns: Seq[Attribute], keys: Seq[Attribute], toKey: Expression): Option[InternalRow] = Try {
    val row = UnsafeProjection.create(columns.map(column => Literal.default(column.dataType)))(InternalRow.empty).copy()
    ObjectOperator.deserializeRowToObject(toKey, keys)(UnsafeProjection.create(keys, columns)(row))
    row
  }.toOption
}

private final class RowsAndTicks(arrivals: ThreadFedInput, empty: Option[InternalRow]) extends Iterator[InternalRow] {
  private val current = CurrentRow.ofThisTask()
  private var tick = empty.orNull
  private var upcoming: InternalRow = _

  override def hasNext: Boolean = {
    while (upcoming == null && !arrivals.hasEnded) {
      // A timer's rows were not made from the last record, and a failure of the input does not belong to it.
      current.forget()
      // Asked before the queue is: if none is expected and none is queued, all known rows have been processed.
      val expectsRows = arrivals.expectsRows
      val arrival = arrivals.nextWithin(RowsAndTicks.TickMs)
      if (arrival != null) {
        current.restore(arrival.origin)
        Ticks.set(false)
        upcoming = arrival.row
        if (tick == null) {
          tick = arrival.row
        }
      } else {
        current.expectsRows = if (arrivals.hasEnded) arrivals.expectsRows else expectsRows
        if (tick != null && !arrivals.hasEnded) {
          Ticks.set(true)
          upcoming = tick
        }
      }
    }
    upcoming != null
  }

  override def next(): InternalRow = {
    if (!hasNext) {
      throw new NoSuchElementException
    }
    val row = upcoming
    upcoming = null
    row
  }
}

private object RowsAndTicks {
  private val TickMs = 50L
}
