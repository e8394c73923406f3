package org.apache.spark.sql.tailrace.operators.join

import org.apache.spark.sql.catalyst.expressions.{Attribute, BasePredicate, Expression, InterpretedPredicate, Literal, NamedExpression, Predicate, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.catalyst.expressions.BindReferences.bindReference
import org.apache.spark.sql.catalyst.plans.logical.EventTimeWatermark
import org.apache.spark.sql.execution.streaming.operators.stateful.WatermarkSupport
import org.apache.spark.sql.execution.streaming.operators.stateful.join.{SupportsEvictByCondition, SupportsEvictByTimestamp, SymmetricHashJoinStateManager}
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinHelper._
import org.apache.spark.sql.execution.streaming.operators.stateful.join.SymmetricHashJoinStateManager.KeyToValuePair
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.tailrace.operators.state.IntraEpochWatermark

/**
 * What a task keeps of one side of a join.
 *
 * @param mayMatch whether the join's condition leaves a row any chance, whatever comes on the other side
 * @param isLate   whether a row comes too late to be joined
 */
private[join] final class JoinSideState(
    val state: SymmetricHashJoinStateManager,
    val keyOf: UnsafeProjection,
    val mayMatch: BasePredicate,
    val isLate: BasePredicate,
    input: Seq[Attribute]) {

  /** Forgets rows that nothing can match any more, and says how many. */
  def remove(removal: Option[JoinStateWatermarkPredicate]): Long = removal.fold(0L) { by =>
    state match {
      case scanned: SupportsEvictByCondition if isOfKey(by) => scanned.evictByKeyCondition(isOld(by))
      case scanned: SupportsEvictByCondition => scanned.evictByValueCondition(isOld(by))
      case sorted: SupportsEvictByTimestamp => sorted.evictByTimestamp(until(by))
      case other => throw unknown(other)
    }
  }

  /** Forgets them and gives them; to be read to the end. */
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
    // That of a key is bound to the key's columns already.
    val predicate = InterpretedPredicate(if (isOfKey(by)) by.expr else bindReference(by.expr, input))
    predicate.eval(_)
  }

  // Watermarks are in milliseconds, and times in the state in microseconds. Spark begins where the last epoch ended; rows that were
  // too old already when they came would stay behind.
  private def until(by: JoinStateWatermarkPredicate): Long = by match {
    case ofKey: JoinStateKeyWatermarkPredicate => ofKey.stateWatermark * 1000
    case ofValue: JoinStateValueWatermarkPredicate => ofValue.stateWatermark * 1000
  }

  private def unknown(other: SymmetricHashJoinStateManager) =
    new IllegalStateException(s"${other.getClass.getName} does not say how old rows are removed")
}

private[join] object SideTimes {
  /** Whether rows of these columns come too late, for as long as the epoch lasts. */
  def lateness(input: Seq[Attribute], watermark: Option[Long], conf: SQLConf): BasePredicate = {
    val isLate = WatermarkSupport.watermarkExpression(IntraEpochWatermark.columnOf(input, conf), watermark)
    Predicate.create(isLate.getOrElse(Literal(false)), input)
  }

  def ordinalOfWatermark(keys: Seq[Expression]): Option[Int] = keys.zipWithIndex.collectFirst {
    case (key: NamedExpression, ordinal) if key.metadata.contains(EventTimeWatermark.delayKey) => ordinal
  }
}
