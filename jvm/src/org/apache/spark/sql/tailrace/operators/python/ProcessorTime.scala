package org.apache.spark.sql.tailrace.operators.python

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.BasePredicate
import org.apache.spark.sql.tailrace.operators.state.{EventTime, MovingWatermark}
import org.apache.spark.sql.tailrace.origin.CurrentRow

/**
 * The watermark that a processor goes by: Spark's, which stands still within an epoch, or one that moves on from there.
 *
 * The feeder shows it the rows; it moves when somebody asks whether it has; and the worker is told of it when it asks, as it
 * does with each tick. In between the worker goes by what it was told.
 */
private[python] final class ProcessorTime(sparks: Option[Long], moving: Option[MovingTime]) {
  @volatile private var reached = sparks
  @volatile private var told = sparks

  def watermarkMs: Option[Long] = reached

  /** Whether there is something to tell the worker. */
  def hasNews: Boolean = moving.exists { time =>
    // Asked by two threads.
    time.synchronized {
      time.watermark.step().foreach { nextMs =>
        reached = Some(math.max(nextMs, sparks.getOrElse(nextMs)))
        time.watermark.lookedThrough()
      }
    }
    reached != told
  }

  /** What the worker is told, if it is not always the same. */
  def tell(): Option[Long] = if (moving.isEmpty) {
    None
  } else {
    told = reached
    told
  }

  /** The rows that are not late, in the thread that reads them. */
  def inTime(rows: Iterator[InternalRow], current: CurrentRow, onLate: () => Unit): Iterator[InternalRow] =
    moving.fold(rows) { time =>
      var (judgedBy, isLate) = (Long.MinValue, Option.empty[BasePredicate])
      rows.filter { row =>
        val movedTo = time.synchronized {
          time.watermark.sees(current.place, time.column.of(row))
          time.watermark.reachedMs
        }
        if (movedTo > judgedBy) {
          judgedBy = movedTo
          isLate = Some(time.lateness(movedTo))
        }
        val late = isLate.exists(_.eval(row))
        if (late) {
          onLate()
        }
        !late
      }
    }
}

/** @param lateness which rows are late at a watermark */
private[python] final class MovingTime(
    val watermark: MovingWatermark,
    val column: EventTime,
    val lateness: Long => BasePredicate)
