package org.apache.spark.sql.tailrace.origin

import org.apache.spark.sql.connector.read.InputPartition
import org.apache.spark.sql.tailrace.internals.kafka.KafkaPartition

/**
 * A partition of one of the query's sources. `source` is the number of the scan ([[SourceScans]]): it tells two sources
 * apart that read the same topic, or topics of the same name on two clusters.
 */
final case class SourcePartition(source: Int, topic: String, partition: Int) {
  /** True if no record of a source stands behind it. */
  def isMadeByTime: Boolean = source < 0
}

object SourcePartition {
  /** For rows of a task that were not made from a record: a timer fired, or a session closed. */
  def madeByTime(task: Int): SourcePartition = SourcePartition(-1, "time", task)
}

/**
 * The source partitions that an epoch reads. A row carries an index into this table instead of a topic's name, because
 * an index is small enough to go through a shuffle with each row.
 *
 * The table is filled while the plan is executed on the driver. Tasks get a copy and only read it.
 */
final class SourcePartitions extends Serializable {
  private var table = Vector.empty[SourcePartition]

  /**
   * Adds the partitions of a source, and returns the index of the first one.
   *
   * @param name stands for the topic if the source is not Kafka
   */
  def add(source: Int, name: String, partitions: Seq[InputPartition]): Int = synchronized {
    val first = table.length
    table ++= partitions.zipWithIndex.map { case (partition, index) =>
      KafkaPartition.of(partition).fold(SourcePartition(source, name, index))(kafka =>
        SourcePartition(source, kafka.topic, kafka.partition))
    }
    first
  }

  def apply(index: Int): SourcePartition = table(index)

  def get(index: Int): Option[SourcePartition] = table.lift(index)

  def length: Int = table.length

  /** Null if the origin is unknown. */
  def positionOf(origin: Origin): SourcePosition =
    if (origin == null || origin.offset < 0) null
    else get(origin.partitionIndex).map(SourcePosition(_, origin.offset)).orNull
}

/** An operator that adds the partitions of its source to the table when it is executed. */
trait KnowsSourcePartitions {
  def partitions: SourcePartitions
}

object SourcePartitions {
  val none: SourcePartitions = new SourcePartitions
}
