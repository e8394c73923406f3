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

/** Below `transformWithState`: its rows and, while none come, a row every now and then that says so; see [[Ticks]]. */
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
   * Zeros and empty texts. Spark makes an object of a row's key before it asks the processor; if that cannot be done with this
   * one, there is nothing to tick with until the first row has come.
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
  private var following: InternalRow = _

  override def hasNext: Boolean = {
    while (following == null && !arrivals.hasEnded) {
      // What a timer makes does not come from the last row, and neither does a failure of the input.
      current.forget()
      val arrival = arrivals.nextWithin(RowsAndTicks.EveryMs)
      if (arrival != null) {
        current.restore(arrival.origin)
        Ticks.set(false)
        following = arrival.row
        if (tick == null) {
          tick = arrival.row
        }
      } else if (tick != null && !arrivals.hasEnded) {
        Ticks.set(true)
        following = tick
      }
    }
    following != null
  }

  override def next(): InternalRow = {
    if (!hasNext) {
      throw new NoSuchElementException
    }
    val row = following
    following = null
    row
  }
}

private object RowsAndTicks {
  private val EveryMs = 50L
}
