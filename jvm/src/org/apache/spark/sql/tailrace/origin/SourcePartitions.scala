package org.apache.spark.sql.tailrace.origin

import org.apache.spark.sql.connector.read.InputPartition
import org.apache.spark.sql.tailrace.internals.kafka.KafkaPartition

/** A partition of one of the query's sources. `source` tells two sources apart that read the same topic. */
final case class SourcePartition(source: Int, topic: String, partition: Int) {
  /** True if no record of a source stands behind it. */
  def isMadeByTime: Boolean = source < 0
}

object SourcePartition {
  /** For rows of a task whose origin is unknown. */
  def unknown(task: Int): SourcePartition = SourcePartition(-1, "unknown", task)
}

/**
 * The source partitions that an epoch reads. A row carries an index into this table instead of a topic's name, because
 * an index is small enough to go through a shuffle with each row.
 *
 * The table is filled while the plan is executed on the driver. Tasks get a copy and only read it.
 */
final class SourcePartitions extends Serializable {
  private var table = Vector.empty[SourcePartition]

  /** Adds the partitions of a source, and returns the index of the first one. */
  def add(source: String, partitions: Seq[InputPartition]): Int = synchronized {
    val first = table.length
    val number = table.lastOption.fold(0)(_.source + 1)
    table ++= partitions.zipWithIndex.map { case (partition, index) =>
      KafkaPartition.of(partition).fold(SourcePartition(number, source, index))(kafka =>
        SourcePartition(number, kafka.topic, kafka.partition))
    }
    first
  }

  def apply(index: Int): SourcePartition = table(index)

  def get(index: Int): Option[SourcePartition] = table.lift(index)

  def length: Int = table.length

  /** Null if the origin is unknown. */
  def positionOf(origin: Origin): SourcePosition =
    if (origin == null || origin.offset < 0) null
    else get(origin.partitionIndex).map(at => SourcePosition(at.topic, at.partition, origin.offset)).orNull
}

/** An operator that adds the partitions of its source to the table when it is executed. */
trait KnowsSourcePartitions {
  def partitions: SourcePartitions
}

object SourcePartitions {
  val none: SourcePartitions = new SourcePartitions
}
