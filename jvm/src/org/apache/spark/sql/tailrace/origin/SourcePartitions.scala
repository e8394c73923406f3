package org.apache.spark.sql.tailrace.origin

import org.apache.spark.sql.connector.read.InputPartition
import org.apache.spark.sql.tailrace.internals.kafka.KafkaPartition

/** A partition of a source. */
final case class SourcePartition(topic: String, partition: Int)

/**
 * The partitions that an epoch reads. A row carries an index into this table instead of a topic's name, because the
 * index is short and goes through a shuffle as a number.
 *
 * It is filled while the plan is executed on the driver and then travels with the tasks, which only read it.
 */
final class SourcePartitions extends Serializable {
  private var table = Vector.empty[SourcePartition]
  private var sources = Vector.empty[Int]

  /** Adds the partitions of a source, and says at which index they begin. */
  def add(source: String, partitions: Seq[InputPartition]): Int = synchronized {
    val first = table.length
    sources ++= Seq.fill(partitions.length)(sources.lastOption.fold(0)(_ + 1))
    table ++= partitions.zipWithIndex.map { case (partition, index) => SourcePartitions.of(partition, source, index) }
    first
  }

  def apply(place: Int): Option[SourcePartition] = table.lift(place)

  /** Which of the query's sources; two of them may read the same topic. */
  def sourceOf(place: Int): Int = sources(place)

  def length: Int = table.length

  /** Null when nobody upstream knows. */
  def positionOf(origin: Origin): SourcePosition =
    if (origin == null || origin.offset < 0) null
    else apply(origin.place).map(at => SourcePosition(at.topic, at.partition, origin.offset)).orNull
}

/** The operator that numbers the partitions of a source when it is executed. */
trait KnowsSourcePartitions {
  def places: SourcePartitions
}

object SourcePartitions {
  val none: SourcePartitions = new SourcePartitions

  private def of(partition: InputPartition, source: String, index: Int): SourcePartition =
    KafkaPartition.of(partition).fold(SourcePartition(source, index))(kafka =>
      SourcePartition(kafka.topic, kafka.partition))
}
