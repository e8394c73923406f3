package org.apache.spark.sql.tailrace.operators.origin

import org.apache.spark.SparkException
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, SortOrder, UnsafeRow}
import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode}
import org.apache.spark.sql.tailrace.internals.LostShufflePeer
import org.apache.spark.sql.tailrace.metrics.{MicroClock, StageProbe}
import org.apache.spark.sql.tailrace.origin.{CurrentRow, OriginTag, ReplayedRows, ReplayOrder, SourcePartitions}

/**
 * Above a shuffle: sets the row's origin, if it was sent with the row.
 *
 * @param replayed rows of an earlier attempt, whose order is restored
 */
case class OriginOutOfShuffleExec(
    child: SparkPlan,
    partitions: SourcePartitions,
    stage: Int,
    timed: Boolean,
    replayed: Option[ReplayedRows])
    extends UnaryExecNode {
  override def output: Seq[Attribute] = child.output
  override def outputPartitioning: Partitioning = child.outputPartitioning
  override def outputOrdering: Seq[SortOrder] = child.outputOrdering
  override def nodeName: String = "OriginOutOfShuffle"
  override protected def stringArgs: Iterator[Any] = Iterator(s"stage $stage")

  override protected def doExecute(): RDD[InternalRow] = {
    val (columns, table, ownStage, isTimed, before) = (output.length, partitions, stage, timed, replayed)
    child.execute().mapPartitionsInternal { rows =>
      val current = CurrentRow.ofThisTask()
      current.belongsTo(table, ownStage, isTimed)
      val out = new OutOfShuffle(rows, current, columns, if (isTimed) StageProbe.ofThisTask(ownStage) else null)
      before.fold[Iterator[InternalRow]](out)(ReplayOrder(out, current, _))
    }
  }

  override protected def withNewChildInternal(newChild: SparkPlan): SparkPlan = copy(child = newChild)
}

/** A class of its own for the same reason as [[IntoShuffle]]. */
private final class OutOfShuffle(rows: Iterator[InternalRow], current: CurrentRow, columns: Int, probe: StageProbe)
    extends Iterator[InternalRow] {
  private val tag = new OriginTag(columns)

  override def hasNext: Boolean = {
    val more =
      try rows.hasNext
      catch {
        case failure: SparkException if LostShufflePeer.isWriter(failure) =>
          LostShufflePeer.awaitCause()
          throw failure
      }
    if (!more) {
      current.forget()
    }
    more
  }

  override def next(): InternalRow = {
    // The shuffle's serializer makes UnsafeRows only.
    val row = rows.next().asInstanceOf[UnsafeRow]
    if (tag.isOn(row)) {
      take(row)
    } else if (current.partitionIndex != CurrentRow.UnknownPartition) {
      current.forget()
    }
    row
  }

  private def take(row: UnsafeRow): Unit = {
    val sentAt = tag.take(row, current)
    if (current.weight > 0) {
      val now = MicroClock.now()
      current.enteredAt = now
      probe.entered(now - sentAt, current.weight)
    }
  }
}
