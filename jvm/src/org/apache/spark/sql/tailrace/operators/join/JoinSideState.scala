package org.apache.spark.sql.tailrace.operators.join

import org.apache.spark.sql.catalyst.expressions.{
  Attribute, BasePredicate, Expression, InterpretedPredicate, Literal, NamedExpression, Predicate, UnsafeProjection,
  UnsafeRow
}
import org.apache.spark.sql.catalyst.expressions.BindReferences.bindReference
import org.apache.spark.sql.catalyst.plans.logical.EventTimeWatermark
import org.apache.spark.sql.execution.streaming.operators.stateful.WatermarkSupport
import org.apache.spark.sql.execution.streaming.operators.stateful.join.{
  SupportsEvictByCondition, SupportsEvictByTimestamp, SymmetricHashJoinStateManager
}
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinHelper._
import org.apache.spark.sql.execution.streaming.operators.stateful.join.SymmetricHashJoinStateManager.KeyToValuePair
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.tailrace.operators.state.IntraEpochWatermark

/**
 * The state of one side of a join, in a task.
 *
 * @param mayMatch false if the join's condition excludes a row whatever the other side is
 * @param isLate   true if a row is too late to be joined
 */
private[join] final class JoinSideState(
    val state: SymmetricHashJoinStateManager,
    val keyOf: UnsafeProjection,
    val mayMatch: BasePredicate,
    val isLate: BasePredicate,
    input: Seq[Attribute]) {

  /** Removes rows that nothing can match any more, and returns their number. */
  def remove(removal: Option[JoinStateWatermarkPredicate]): Long = removal.fold(0L) { by =>
    state match {
      case scanned: SupportsEvictByCondition if isOfKey(by) => scanned.evictByKeyCondition(isOld(by))
      case scanned: SupportsEvictByCondition => scanned.evictByValueCondition(isOld(by))
      case sorted: SupportsEvictByTimestamp => sorted.evictByTimestamp(until(by))
      case other => throw unknown(other)
    }
  }

  /** Removes them and returns them. To be read to the end. */
  def removed(removal: Option[JoinStateWatermarkPredicate]): Iterator[KeyToValuePair] =
    removal.fold(Iterator.empty[KeyToValuePair]) { by =>
      state match {
        case scanned: SupportsEvictByCondition if isOfKey(by) => scanned.evictAndReturnByKeyCondition(isOld(by))
        case scanned: SupportsEvictByCondition => scanned.evictAndReturnByValueCondition(isOld(by))
        case sorted: SupportsEvictByTimestamp => sorted.evictAndReturnByTimestamp(until(by))
        case other => throw unknown(other)
      }
    }

  private def isOfKey(by: JoinStateWatermarkPredicate): Boolean = by.isInstanceOf[JoinStateKeyWatermarkPredicate]

  private def isOld(by: JoinStateWatermarkPredicate): UnsafeRow => Boolean = {
    // A key's predicate is already bound to the key's columns.
    val predicate = InterpretedPredicate(if (isOfKey(by)) by.expr else bindReference(by.expr, input))
    predicate.eval(_)
  }

  // Watermarks are in milliseconds, times in the state in microseconds. Unlike Spark, this does not start at the last
  // epoch's watermark: rows that were already too old when they came would never be removed.
  private def until(by: JoinStateWatermarkPredicate): Long = by match {
    case ofKey: JoinStateKeyWatermarkPredicate => ofKey.stateWatermark * 1000
    case ofValue: JoinStateValueWatermarkPredicate => ofValue.stateWatermark * 1000
  }

  private def unknown(other: SymmetricHashJoinStateManager) =
    new IllegalStateException(s"${other.getClass.getName} has no known way to remove old rows")
}

private[join] object SideTimes {
  /** True for late rows. The watermark is that of the whole epoch. */
  def lateness(input: Seq[Attribute], watermark: Option[Long], conf: SQLConf): BasePredicate = {
    val isLate = WatermarkSupport.watermarkExpression(IntraEpochWatermark.columnOf(input, conf), watermark)
    Predicate.create(isLate.getOrElse(Literal(false)), input)
  }

  def ordinalOfWatermark(keys: Seq[Expression]): Option[Int] = keys.zipWithIndex.collectFirst {
    case (key: NamedExpression, ordinal) if key.metadata.contains(EventTimeWatermark.delayKey) => ordinal
  }
}
