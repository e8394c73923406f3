package org.apache.spark.sql.tailrace.operators.origin

import org.apache.spark.TaskContext
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, SortOrder, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode}
import org.apache.spark.sql.tailrace.internals.LostShufflePeer
import org.apache.spark.sql.tailrace.metrics.{MicroClock, StageProbe}
import org.apache.spark.sql.tailrace.origin.{CurrentRow, Ordinals, OriginTag}

/**
 * Below a shuffle: sends the row's origin with the row.
 *
 * @param everyRow true to send the origin of every row, false to send only those of rows that are timed
 */
case class OriginIntoShuffleExec(child: SparkPlan, stage: Int, everyRow: Boolean, timed: Boolean)
    extends UnaryExecNode {
  override def output: Seq[Attribute] = child.output
  override def outputPartitioning: Partitioning = child.outputPartitioning
  override def outputOrdering: Seq[SortOrder] = child.outputOrdering
  override def nodeName: String = "OriginIntoShuffle"
  override protected def stringArgs: Iterator[Any] = Iterator(s"stage $stage")

  override protected def doExecute(): RDD[InternalRow] = {
    val (columns, ownStage, isTimed) = (child.output, stage, timed)
    val (exact, always) = (everyRow, everyRow || !OriginTag.hasSpareBit(columns.length))
    child.execute().mapPartitionsInternal { rows =>
      LostShufflePeer.awaitCauseOfLostReader(TaskContext.get())
      new IntoShuffle(rows, columns, always, exact, if (isTimed) StageProbe.ofThisTask(ownStage) else null)
    }
  }

  override protected def withNewChildInternal(newChild: SparkPlan): SparkPlan = copy(child = newChild)
}

/** A class of its own: the JVM can inline it, which it cannot do with a `map`, whose code all callers share. */
private final class IntoShuffle(
    rows: Iterator[InternalRow],
    columns: Seq[Attribute],
    always: Boolean,
    exact: Boolean,
    probe: StageProbe)
    extends Iterator[InternalRow] {
  private val current = CurrentRow.ofThisTask()
  private val tag = new OriginTag(columns.length)
  private val ordinals = if (exact) new Ordinals(current) else null
  private lazy val toUnsafe = UnsafeProjection.create(columns, columns)

  override def hasNext: Boolean = rows.hasNext

  override def next(): InternalRow = {
    val row = rows.next()
    if (current.weight == 0 && !always) row else tagged(row)
  }

  private def tagged(row: InternalRow): UnsafeRow = {
    var now = CurrentRow.Unknown
    if (current.weight > 0) {
      now = MicroClock.now()
      probe.left(now - current.enteredAt, current.weight)
    }
    val path = if (exact) Ordinals.extend(current.path, ordinals.next()) else current.path
    row match {
      case unsafe: UnsafeRow => tag.put(unsafe, current, path, now)
      case other => tag.put(toUnsafe(other), current, path, now)
    }
  }
}
