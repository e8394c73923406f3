package org.apache.spark.sql.tailrace.origin

import org.apache.spark.TaskContext

/** Where a row came from and when, kept while the row itself is out of sight. Times are microseconds since 1970. */
final class Origin(
    val place: Int,
    val offset: Long,
    val path: Long,
    val recordedAt: Long,
    val readAt: Long,
    val enteredAt: Long,
    val weight: Int)

/**
 * The origin of the row that a task is working on: written where the row enters the task, read wherever it is needed
 * downstream in the same thread. Real-time operators take one row in and pass its results on at once, so there
 * is always one such row.
 */
final class CurrentRow {
  import CurrentRow._

  /** Index into [[places]]. */
  var place: Int = UnknownPlace
  var offset: Long = Unknown

  /** Which of the rows that were made of the record and then went through shuffles; see [[Ordinals]]. */
  var path: Long = 0L

  /** The record's own timestamp. */
  var recordedAt: Long = Unknown

  /** When Spark read it. */
  var readAt: Long = Unknown

  /** When it entered this stage. */
  var enteredAt: Long = Unknown

  /** For how many rows this one stands where rows are timed; none if it is not timed, and then the last two are old. */
  var weight: Int = 0

  /** What [[place]] means. */
  var places: SourcePartitions = SourcePartitions.none
  var stage: Int = 0

  /** Whether somebody wants to know how long things take. */
  var timed: Boolean = false

  /** The same for all rows of the task. */
  def belongsTo(newPlaces: SourcePartitions, newStage: Int, isTimed: Boolean): Unit = {
    places = newPlaces
    stage = newStage
    timed = isTimed
  }

  /** Nobody knows where the row came from. */
  def forget(): Unit = {
    place = UnknownPlace
    offset = Unknown
    path = 0L
    recordedAt = Unknown
    weight = 0
  }

  def keep(): Origin = new Origin(place, offset, path, recordedAt, readAt, enteredAt, weight)

  def restore(origin: Origin): Unit = {
    place = origin.place
    offset = origin.offset
    path = origin.path
    recordedAt = origin.recordedAt
    readAt = origin.readAt
    enteredAt = origin.enteredAt
    weight = origin.weight
  }
}

object CurrentRow {
  val Unknown: Long = -1L
  val UnknownPlace: Int = -1

  private final class Slot(val task: Long, var row: CurrentRow)
  private val slot = new ThreadLocal[Slot]

  /** Of the task that builds its iterators in this thread. Keep it: do not ask again for each row. */
  def ofThisTask(): CurrentRow = slotOfThisTask().row

  /** For an operator that works in two threads: what its input writes, and what its output is to write. */
  def acrossThreads(): (CurrentRow, CurrentRow) = {
    val current = slotOfThisTask()
    val upstream = current.row
    current.row = new CurrentRow
    current.row.belongsTo(upstream.places, upstream.stage, upstream.timed)
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
