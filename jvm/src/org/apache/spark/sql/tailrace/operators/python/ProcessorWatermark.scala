package org.apache.spark.sql.tailrace.operators.python

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.BasePredicate
import org.apache.spark.sql.tailrace.operators.state.{EventTime, MovingWatermark}
import org.apache.spark.sql.tailrace.origin.CurrentRow

/**
 * The watermark of a processor: Spark's, which stands still within an epoch, or one that advances from there.
 *
 * The feeder shows it each row, it advances in [[hasAdvanced]], and the worker reads it with each timer tick. Between
 * ticks the worker uses the value that it read last.
 */
private[python] final class ProcessorWatermark(ofEpoch: Option[Long], moving: Option[MovingWatermarkInput]) {
  @volatile private var reached = ofEpoch
  @volatile private var known = ofEpoch

  def watermarkMs: Option[Long] = reached

  /** Advances the watermark if it can; true if the worker does not know its value yet. */
  def hasAdvanced: Boolean = moving.exists { time =>
    // Both the feeder and the reader call this.
    time.synchronized {
      time.watermark.step().foreach { nextMs =>
        reached = Some(math.max(nextMs, ofEpoch.getOrElse(nextMs)))
        time.watermark.stepDone()
      }
    }
    reached != known
  }

  /** The value for the worker, which knows it from now on; None if it is Spark's. */
  def readByWorker(): Option[Long] = if (moving.isEmpty) {
    None
  } else {
    known = reached
    known
  }

  /** Drops late rows, in the thread that reads the rows. */
  def dropLate(rows: Iterator[InternalRow], current: CurrentRow, onLate: () => Unit): Iterator[InternalRow] =
    moving.fold(rows) { time =>
      var (judgedBy, isLate) = (Long.MinValue, Option.empty[BasePredicate])
      rows.filter { row =>
        val movedTo = time.synchronized {
          time.watermark.observe(current.partitionIndex, time.column.of(row))
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

/**
 * What an advancing watermark is computed from.
 *
 * @param lateness the predicate for late rows at a watermark
 */
private[python] final class MovingWatermarkInput(
    val watermark: MovingWatermark,
    val column: EventTime,
    val lateness: Long => BasePredicate)
