package org.apache.spark.sql.tailrace.operators.join

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.BasePredicate
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinHelper.JoinStateWatermarkPredicates
import org.apache.spark.util.CompletionIterator
import org.apache.spark.sql.tailrace.operators.input.InputRow
import org.apache.spark.sql.tailrace.operators.state.{EventTime, MovingWatermark}

/** What Spark would say of a join at some watermark: which rows of each side come too late, and which are kept no longer. */
private[join] final case class JoinTimes(late: Seq[BasePredicate], removal: JoinStateWatermarkPredicates)

/**
 * Lets a join forget while the epoch lasts, and pass on what has matched nothing.
 *
 * What has been passed on as a row without a match can get none: it is not kept any more, and a row that it could have met is
 * late from then on.
 */
private[join] final class EarlyRemoval(
    watermark: MovingWatermark,
    times: Seq[Option[EventTime]],
    at: Long => JoinTimes) {
  private var looked: Option[JoinTimes] = None

  /** How many rows were forgotten on sides whose old rows are not passed on. */
  var removed = 0L

  /** To be told of each row, before it is known whether it is late. */
  def sees(arrival: InputRow): Unit =
    times(arrival.input).foreach(time => watermark.sees(arrival.origin.place, time.of(arrival.row)))

  def isLate(arrival: InputRow): Boolean = looked.exists(_.late(arrival.input).eval(arrival.row))

  /** The outer rows whose time is over, if it is time to look for them; to be read to the end. */
  def look(task: JoinTask): Iterator[InternalRow] = watermark.step().fold(Iterator.empty[InternalRow]) { untilMs =>
    val now = at(untilMs)
    looked = Some(now)
    CompletionIterator[InternalRow, Iterator[InternalRow]](
      task.outerRows(now.removal), {
        removed += task.removeTheRest(now.removal)
        watermark.lookedThrough()
      })
  }
}
