package org.apache.spark.sql.tailrace.operators.origin

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, SortOrder}
import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode}
import org.apache.spark.sql.execution.datasources.v2.RealTimeStreamScanExec
import org.apache.spark.sql.tailrace.internals.kafka.KafkaPartition
import org.apache.spark.sql.tailrace.metrics.{LiveFigures, MicroClock, Sampling, SourceProbe}
import org.apache.spark.sql.tailrace.origin.{CurrentRow, KnowsSourcePartitions, SourcePartitions}

/** A scan whose tasks may continue with the open readers of other tasks, which knows their offsets only then. */
trait TakesOverReaders {
  def takesOver: Boolean
}

/**
 * Above a scan: sets the origin of each row. The rows themselves pass unchanged.
 *
 * @param source the number of the scan
 */
case class OriginFromSourceExec(
    child: SparkPlan,
    source: Int,
    partitions: SourcePartitions,
    stage: Int,
    timed: Boolean)
    extends UnaryExecNode
    with KnowsSourcePartitions {
  override def output: Seq[Attribute] = child.output
  override def outputPartitioning: Partitioning = child.outputPartitioning
  override def outputOrdering: Seq[SortOrder] = child.outputOrdering
  override def nodeName: String = "OriginFromSource"
  override protected def stringArgs: Iterator[Any] = Iterator(s"stage $stage")

  override protected def doExecute(): RDD[InternalRow] = {
    val scan = child match {
      case scan: RealTimeStreamScanExec => scan
      case other =>
        throw new IllegalStateException(
          s"${other.nodeName} is between the source and the operator that sets the rows' origins")
    }
    // Does the scan's own work too: one more iterator between source and sink would cost as much as this one does.
    val rows = scan.inputRDD
    val rowsRead = scan.longMetric("numOutputRows")
    val first = partitions.add(source, scan.stream.toString, scan.inputPartitions)
    val kafka = scan.inputPartitions.map(KafkaPartition.of)
    val inKafka = kafka.forall(_.isDefined) && Seq("offset", "timestamp").forall(ordinal(_) >= 0)
    val offset = if (inKafka) ordinal("offset") else -1
    val timestamp = if (inKafka) ordinal("timestamp") else -1
    val takesOver = scan match {
      case scan: TakesOverReaders => scan.takesOver
      case _ => false
    }
    // An epoch that takes over reads the partitions that are being read.
    if (timed && !takesOver) {
      LiveFigures.reading(sparkContext, scan.stream, kafka.flatten)
    }
    val startsAt = kafka.map(_.map(_.fromOffset).filterNot(_ => takesOver)).toArray
    val (table, ownStage, isTimed) = (partitions, stage, timed)

    rows.mapPartitionsWithIndexInternal { (index, input) =>
      val current = CurrentRow.ofThisTask()
      current.belongsTo(table, ownStage, isTimed)
      val probe =
        if (isTimed) SourceProbe.ofThisTask(table.get(first + index), ownStage, startsAt(index), takesOver) else null
      val sampling = new Sampling
      val partitionIndex = first + index
      new Iterator[InternalRow] {
        override def hasNext: Boolean = {
          if (probe != null) {
            probe.waits()
          }
          val more = input.hasNext
          if (!more) {
            // Rows that leave the task now, such as a timer's, were not made from the last record.
            current.forget()
            if (probe != null) {
              probe.ended()
            }
          }
          more
        }

        override def next(): InternalRow = {
          val row = input.next()
          rowsRead += 1
          current.partitionIndex = partitionIndex
          if (offset >= 0) {
            current.offset = row.getLong(offset)
            current.path = 0L
            current.recordedAt = row.getLong(timestamp)
          }
          if (probe != null) {
            probe.read(current.offset)
            current.weight = sampling.weightOfNext()
            if (current.weight > 0) {
              val now = MicroClock.now()
              current.readAt = now
              current.enteredAt = now
              probe.timed(current.recordedAt, now, current.weight)
            }
          }
          row
        }
      }
    }
  }

  private def ordinal(column: String): Int = output.indexWhere(_.name == column)

  override protected def withNewChildInternal(newChild: SparkPlan): SparkPlan = copy(child = newChild)
}
