package org.apache.spark.sql.tailrace.python

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, SortOrder}
import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode}

/** Above the scan of a Kafka source: notes the position of each row that passes, and changes nothing. */
case class RealTimePositionExec(child: SparkPlan) extends UnaryExecNode {
  override def output: Seq[Attribute] = child.output
  override def outputPartitioning: Partitioning = child.outputPartitioning
  override def outputOrdering: Seq[SortOrder] = child.outputOrdering

  override protected def doExecute(): RDD[InternalRow] = {
    val (topic, partition, offset) = (place("topic"), place("partition"), place("offset"))
    child.execute().mapPartitionsInternal { rows =>
      val current = CurrentRow.ofThisTask()
      rows.map { row =>
        current.set(row.getUTF8String(topic), row.getInt(partition), row.getLong(offset))
        row
      }
    }
  }

  private def place(column: String): Int = output.indexWhere(_.name == column)

  override protected def withNewChildInternal(newChild: SparkPlan): SparkPlan = copy(child = newChild)
}

object RealTimePositionExec {
  /** Whether the rows of `scan` say where they come from, as those of Kafka do. */
  def canRead(scan: SparkPlan): Boolean = Seq("topic", "partition", "offset").forall(name => scan.output.exists(_.name == name))
}
