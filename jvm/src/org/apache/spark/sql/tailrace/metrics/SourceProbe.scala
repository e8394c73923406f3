package org.apache.spark.sql.tailrace.metrics

import org.apache.spark.sql.tailrace.origin.{CurrentRow, SourcePartition}

/**
 * Watches a task read its source partition: how long records waited, how far it is, when it began and ended.
 *
 * @param startsAt the first offset, if known
 * @param takesOver true if the task waits for the reader of another task, and begins when it gets it
 */
final class SourceProbe(
    task: TaskIdentity,
    val partition: SourcePartition,
    queue: Series,
    startsAt: Option[Long],
    takesOver: Boolean) {
  // Only the task's thread writes these; it does no harm if the reporter sees a figure a moment late.
  @volatile private var beganAt = 0L
  @volatile private var endedAt = 0L
  private var rows = 0L
  private var offset = startsAt.fold(CurrentRow.Unknown)(_ - 1)
  private var reportedRows = 0L
  private var reportedEnd = false

  /** The task is about to ask for a row. */
  def waits(): Unit = if (beganAt == 0L) {
    if (takesOver) {
      SourceProbe.waiting.set(this)
    } else {
      begins()
    }
  }

  private def begins(): Unit = beganAt = MicroClock.now()

  def read(at: Long): Unit = {
    offset = at
    rows += 1
  }

  def timed(recordedAt: Long, now: Long, weight: Int): Unit =
    if (recordedAt >= 0) {
      queue.record(now - recordedAt, weight)
    }

  /** The epoch's input is over. */
  def ended(): Unit = if (endedAt == 0L) {
    endedAt = MicroClock.now()
  }

  /** None if nothing has changed since the last call. */
  private[metrics] def take(): Option[ReadProgress] = {
    val (now, end) = (rows, endedAt)
    val isNew = now > reportedRows || (end != 0L && !reportedEnd)
    val told =
      ReadProgress(task.run, task.epoch, partition.topic, partition.partition, beganAt, end, offset, now - reportedRows)
    reportedRows = now
    reportedEnd = end != 0L
    Option.when(beganAt != 0L && (isNew || end == 0L))(told)
  }

  private[metrics] def isClosed: Boolean = queue.isClosed
}

object SourceProbe {
  private val waiting = new ThreadLocal[SourceProbe]

  /** The task that asks for a row in this thread has just taken over its reader. */
  def tookOver(): Unit = {
    Option(waiting.get).foreach(_.begins())
    waiting.remove()
  }

  def ofThisTask(
      partition: Option[SourcePartition],
      stage: Int,
      startsAt: Option[Long],
      takesOver: Boolean): SourceProbe = {
    val task = TaskIdentity.ofThisTask()
    val known = partition.getOrElse(SourcePartition(-1, "", task.partition))
    val queue = task.ofPartition(Figure.SourceQueue, stage, known)
    ExecutorFigures.open(new SourceProbe(task, known, queue, startsAt, takesOver))
  }
}
