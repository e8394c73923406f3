package org.apache.spark.sql.tailrace.operators.join

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.BasePredicate
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinHelper.JoinStateWatermarkPredicates
import org.apache.spark.util.CompletionIterator
import org.apache.spark.sql.tailrace.operators.input.InputRow
import org.apache.spark.sql.tailrace.operators.state.{EventTime, MovingWatermark}

/**
 * Spark's predicates of a join at a watermark: which rows of each side are late, and which are removed from the state.
 */
private[join] final case class JoinTimes(late: Seq[BasePredicate], removal: JoinStateWatermarkPredicates)

/**
 * Lets a join remove old rows from its state within an epoch, and emit outer rows without a match.
 *
 * A row that was emitted without a match must never find one: it is removed from the state, and from then on a row that
 * could have matched it is late.
 */
private[join] final class EarlyRemoval(
    watermark: MovingWatermark,
    times: Seq[Option[EventTime]],
    at: Long => JoinTimes) {
  private var lastTimes: Option[JoinTimes] = None

  /** The number of rows removed from sides whose old rows are not emitted. */
  var removed = 0L

  /** To be called for each row, before [[isLate]]. */
  def observe(arrival: InputRow): Unit =
    times(arrival.input).foreach(time => watermark.observe(arrival.origin.partitionIndex, time.of(arrival.row)))

  def isLate(arrival: InputRow): Boolean = lastTimes.exists(_.late(arrival.input).eval(arrival.row))

  /** If a removal is due, removes old rows and returns the outer rows among them. To be read to the end. */
  def removeIfDue(task: JoinTask): Iterator[InternalRow] =
    watermark.step().fold(Iterator.empty[InternalRow]) { untilMs =>
      val now = at(untilMs)
      lastTimes = Some(now)
      CompletionIterator[InternalRow, Iterator[InternalRow]](
        task.outerRows(now.removal), {
          removed += task.removeTheRest(now.removal)
          watermark.stepDone()
        })
    }
}
