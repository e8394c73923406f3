package org.apache.spark.sql.tailrace.sink.kafka

import java.util.{HashMap => JHashMap}

import scala.collection.mutable

import org.apache.spark.broadcast.Broadcast
import org.apache.spark.sql.catalyst.expressions.XXH64
import org.apache.spark.sql.tailrace.origin.{ReplayedRows, RowKey, SourceId}
import org.apache.spark.unsafe.Platform

/** One output record that is in its topic already. */
final case class WrittenRow(
    place: SourceId,
    id: RowId,
    mark: WriterMark,
    key: Long,
    content: Long,
    contentId: Option[ContentId])

/**
 * The output records of the open epoch that are in their topics already, in the order in which each task wrote them. Made
 * on the driver or by a task that is repeated, and read by tasks.
 */
final class WrittenRows(rows: Seq[WrittenRow]) extends Serializable {
  private val ordered = rows.sortBy(row => (row.mark.attempt, row.mark.sequence)).toArray

  def isEmpty: Boolean = ordered.isEmpty
  def length: Int = ordered.length
  def ++(others: Seq[WrittenRow]): WrittenRows = new WrittenRows(ordered.toSeq ++ others)

  /** How many runs have worked on the open epoch, as far as it shows. */
  def attempts: Int = if (isEmpty) 0 else ordered.last.mark.attempt

  /** The last record of each partition of a source that anything was made of. */
  lazy val lastOffsets: Map[(String, Int), Long] =
    ordered.groupMapReduce(row => (row.place.topic, row.place.partition))(_.id.offset)(_ max _)

  /** What a task has written, in its order. */
  def byTask(task: Int): Iterator[WrittenRow] = ordered.iterator.filter(_.mark.task == task)

  def byPlace(place: SourceId): Iterator[WrittenRow] = ordered.iterator.filter(_.place == place)
}

/** What was written before of the rows of an epoch that begins at these offsets. */
final case class Replayed(written: Broadcast[WrittenRows], starts: Map[(String, Int), Long])
    extends ReplayedRows {
  override def ofTask(task: Int): Iterator[RowKey] = written.value.byTask(task).collect {
    case row if starts.get((row.place.topic, row.place.partition)).forall(_ <= row.id.offset) =>
      RowKey(row.place, row.id.offset, row.id.path)
  }
}

object WrittenRows {
  val nothing: WrittenRows = new WrittenRows(Nil)
  private val Seed = 42L

  /** Stands for a record's key, in its topic. */
  def keyOf(topic: String, key: Array[Byte]): Long = hash(key, topic.hashCode + Seed)

  /** Tells whether a row that was computed again is the same. */
  def contentOf(key: Long, value: Array[Byte]): Long = hash(value, key)

  private def hash(bytes: Array[Byte], seed: Long): Long =
    if (bytes == null) seed * 31 + 1 else XXH64.hashUnsafeBytes(bytes, Platform.BYTE_ARRAY_OFFSET, bytes.length, seed)
}

/** In a task: looks rows up that are about to be written. Each is found once, and forgotten then. */
final class WrittenLookup(written: WrittenRows) {
  import WrittenLookup._

  private final class OfPlace {
    val records = mutable.HashMap.empty[(Long, Long), mutable.ArrayBuffer[There]]
    val lastOffsets = mutable.LongMap.empty[Long]
  }
  private val byPlace = new JHashMap[SourceId, OfPlace]

  def isEmpty: Boolean = written.isEmpty

  /** What is there of the record that the row was made of, and has not come again yet. */
  def of(place: SourceId, id: RowId): mutable.ArrayBuffer[There] =
    if (isEmpty) Nothing else ofPlace(place).records.getOrElse((id.offset, id.path), Nothing)

  /**
   * Whether a row with this key is there that was made of a later record of the same partition. Since they are written in
   * order, an earlier one that is not there was there once: Kafka has compacted the topic.
   */
  def hasLater(place: SourceId, offset: Long, key: Long): Boolean =
    !isEmpty && ofPlace(place).lastOffsets.get(key).exists(_ > offset)

  // A task mostly sees rows of few partitions.
  private def ofPlace(place: SourceId): OfPlace = byPlace.computeIfAbsent(place, _ => index(place))

  private def index(place: SourceId): OfPlace = {
    val found = new OfPlace
    written.byPlace(place).foreach { row =>
      val there = found.records.getOrElseUpdate((row.id.offset, row.id.path), mutable.ArrayBuffer.empty)
      // If the same row is there in two versions, the later one counts.
      there.filterInPlace(_.ordinal != row.id.ordinal)
      there += There(row.id.ordinal, row.content)
      found.lastOffsets.update(row.key, math.max(row.id.offset, found.lastOffsets.getOrElse(row.key, -1L)))
    }
    found
  }
}

object WrittenLookup {
  /** One row of a record that is in the output. */
  final case class There(ordinal: Int, content: Long)

  private val Nothing = mutable.ArrayBuffer.empty[There]
}
