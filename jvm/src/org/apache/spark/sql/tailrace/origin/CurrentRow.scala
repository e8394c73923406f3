package org.apache.spark.sql.tailrace.origin

import org.apache.spark.TaskContext

/** A saved [[CurrentRow]], for a row that is worked on later. Times are in microseconds since 1970. */
final class Origin(
    val partitionIndex: Int,
    val offset: Long,
    val path: Long,
    val recordedAt: Long,
    val readAt: Long,
    val enteredAt: Long,
    val weight: Int,
    val expectsRows: Boolean)

/**
 * The origin of the row that a task is working on. It is set where the row enters the task, and read by any operator
 * downstream in the same thread. Real-time operators take one row and pass on its results at once, so there is always
 * exactly one such row.
 */
final class CurrentRow {
  import CurrentRow._

  /** The source partition of the row's record, as an index into [[partitions]]. */
  var partitionIndex: Int = UnknownPartition
  var offset: Long = Unknown

  /** Tells rows apart that were made from the same record and went through a shuffle; see [[Ordinals]]. */
  var path: Long = 0L

  /** The record's own timestamp. */
  var recordedAt: Long = Unknown

  /** When Spark read the record. */
  var readAt: Long = Unknown

  /** When the row entered this stage. */
  var enteredAt: Long = Unknown

  /** Sampling weight; 0 if the row is not timed, in which case [[readAt]] and [[enteredAt]] are stale. */
  var weight: Int = 0

  /** The source partitions of the epoch. */
  var partitions: SourcePartitions = SourcePartitions.none
  var stage: Int = 0

  /** True if latencies are measured. */
  var timed: Boolean = false

  /**
   * True if rows will soon follow that may be in the output: not all known rows of a replay have come, or the epoch
   * ends. It belongs to the row and not to the task, because an operator with two threads reads ahead: when a row
   * leaves it, the input may have got further. Another thread reads it for rows that are made without an input row.
   */
  @volatile var expectsRows: Boolean = false

  /** Sets what all rows of the task have in common. */
  def belongsTo(newPartitions: SourcePartitions, newStage: Int, isTimed: Boolean): Unit = {
    partitions = newPartitions
    stage = newStage
    timed = isTimed
  }

  /** Marks the row's origin as unknown. What is expected after it does not change. */
  def forget(): Unit = {
    partitionIndex = UnknownPartition
    offset = Unknown
    path = 0L
    recordedAt = Unknown
    weight = 0
  }

  /** The position of the row's record; null if unknown. */
  def position: SourcePosition = partitions.positionOf(keep())

  def keep(): Origin = new Origin(partitionIndex, offset, path, recordedAt, readAt, enteredAt, weight, expectsRows)

  def restore(origin: Origin): Unit = {
    partitionIndex = origin.partitionIndex
    offset = origin.offset
    path = origin.path
    recordedAt = origin.recordedAt
    readAt = origin.readAt
    enteredAt = origin.enteredAt
    weight = origin.weight
    expectsRows = origin.expectsRows
  }
}

object CurrentRow {
  val Unknown: Long = -1L
  val UnknownPartition: Int = -1

  private final class Slot(val task: Long, var row: CurrentRow)
  private val slot = new ThreadLocal[Slot]

  /**
   * The one of the task that builds its iterators in this thread. Keep the result: the lookup is too slow for each row.
   */
  def ofThisTask(): CurrentRow = slotOfThisTask().row

  /** For an operator that uses two threads: the row that its input sets, and the one that its output has to set. */
  def acrossThreads(): (CurrentRow, CurrentRow) = {
    val current = slotOfThisTask()
    val upstream = current.row
    current.row = new CurrentRow
    current.row.belongsTo(upstream.partitions, upstream.stage, upstream.timed)
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
