package org.apache.spark.sql.tailrace.provenance

import org.apache.spark.sql.connector.read.InputPartition
import org.apache.spark.sql.execution.datasources.v2.RealTimeStreamScanExec

/** A partition of a source. */
final case class Place(topic: String, partition: Int)

/**
 * The partitions that an epoch reads. A row carries an index into this table instead of a topic's name, because the
 * index is short and goes through a shuffle as a number.
 *
 * It is filled while the plan is executed on the driver and then travels with the tasks, which only read it.
 */
final class Places extends Serializable {
  private var table = Vector.empty[Place]
  private var sources = Vector.empty[Int]

  /** Adds the partitions of a source, and says at which index they begin. */
  def add(scan: RealTimeStreamScanExec): Int = synchronized {
    val first = table.length
    val source = scan.stream.toString
    sources ++= Seq.fill(scan.inputPartitions.length)(sources.lastOption.fold(0)(_ + 1))
    table ++= scan.inputPartitions.zipWithIndex.map { case (partition, index) => Places.of(partition, source, index) }
    first
  }

  def apply(place: Int): Option[Place] = table.lift(place)

  /** Which of the query's sources; two of them may read the same topic. */
  def sourceOf(place: Int): Int = sources(place)

  def length: Int = table.length

  /** Null when nobody upstream knows. */
  def positionOf(origin: Origin): SourcePosition =
    if (origin == null || origin.offset < 0) null
    else apply(origin.place).map(at => SourcePosition(at.topic, at.partition, origin.offset)).orNull
}

object Places {
  val none: Places = new Places

  private def of(partition: InputPartition, source: String, index: Int): Place =
    KafkaPartition.of(partition).fold(Place(source, index))(kafka => Place(kafka.topic, kafka.partition))
}
