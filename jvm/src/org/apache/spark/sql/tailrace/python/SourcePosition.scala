package org.apache.spark.sql.tailrace.python

import org.apache.spark.TaskContext
import org.apache.spark.unsafe.types.UTF8String

/** Where in the source a row came from. */
final case class SourcePosition(topic: String, partition: Int, offset: Long)

object SourcePosition {

  /** In words, for an error: one record, or the records among which it is. */
  def describe(positions: Seq[SourcePosition]): String = positions.filter(_ != null).distinct match {
    case Seq() => "a record whose place in the source is not known (it has come through a shuffle)"
    case Seq(one) => s"the record at topic '${one.topic}', partition ${one.partition}, offset ${one.offset}"
    case many =>
      val places = many.groupBy(at => (at.topic, at.partition)).toSeq.sortBy(_._1).map {
        case ((topic, partition), found) =>
          val offsets = found.map(_.offset)
          s"topic '$topic', partition $partition, offsets ${offsets.min} to ${offsets.max}"
      }
      s"one of ${many.size} records: ${places.mkString("; ")}"
  }
}

/**
 * The position of the row that a task is working on: written where the row is read, read wherever it is needed
 * downstream in the same thread. Real-time operators take one row in and pass its results on at once, so there
 * is always one such row.
 */
final class CurrentRow {
  private var topic: UTF8String = _
  private var topicName: String = _
  private var position: SourcePosition = _

  def set(newTopic: UTF8String, partition: Int, offset: Long): Unit = {
    if (newTopic != topic) {
      // The row that holds it is used again for the next record.
      topic = newTopic.copy()
      topicName = topic.toString
    }
    position = SourcePosition(topicName, partition, offset)
  }

  def set(newPosition: SourcePosition): Unit = position = newPosition

  /** Null when nobody upstream knows. */
  def get: SourcePosition = position
}

object CurrentRow {
  private final class Slot(val task: Long, var row: CurrentRow)
  private val slot = new ThreadLocal[Slot]

  /** Of the task that builds its iterators in this thread. Keep it: do not ask again for each row. */
  def ofThisTask(): CurrentRow = slotOfThisTask().row

  /** For an operator that works in two threads: what its input writes, and what its output is to write. */
  def acrossThreads(): (CurrentRow, CurrentRow) = {
    val current = slotOfThisTask()
    val upstream = current.row
    current.row = new CurrentRow
    (upstream, current.row)
  }

  private def slotOfThisTask(): Slot = {
    val task = TaskContext.get().taskAttemptId()
    val found = slot.get()
    if (found != null && found.task == task) {
      found
    } else {
      val fresh = new Slot(task, new CurrentRow)
      slot.set(fresh)
      fresh
    }
  }
}
