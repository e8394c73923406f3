package org.apache.spark.sql.tailrace.join

import org.apache.spark.sql.catalyst.expressions.{Attribute, BasePredicate, Expression, Literal, NamedExpression, Predicate, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.catalyst.plans.logical.EventTimeWatermark
import org.apache.spark.sql.execution.streaming.operators.stateful.WatermarkSupport
import org.apache.spark.sql.execution.streaming.operators.stateful.join.{SupportsEvictByCondition, SupportsEvictByTimestamp, SymmetricHashJoinStateManager}
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinHelper._
import org.apache.spark.sql.execution.streaming.operators.stateful.join.SymmetricHashJoinStateManager.KeyToValuePair
import org.apache.spark.sql.internal.SQLConf

/**
 * What a task keeps of one side of a join.
 *
 * @param mayMatch whether the join's condition leaves a row any chance, whatever comes on the other side
 * @param isLate   whether a row comes too late to be joined
 * @param removal  which rows nothing can match any more
 */
private[join] final class JoinSideState(
    val state: SymmetricHashJoinStateManager,
    val keyOf: UnsafeProjection,
    val mayMatch: BasePredicate,
    val isLate: BasePredicate,
    removal: Option[JoinStateWatermarkPredicate],
    input: Seq[Attribute]) {

  /** Forgets old rows, and says how many. */
  def remove(): Long = removal.fold(0L) { by =>
    state match {
      case scanned: SupportsEvictByCondition if isOfKey(by) => scanned.evictByKeyCondition(isOld(by))
      case scanned: SupportsEvictByCondition => scanned.evictByValueCondition(isOld(by))
      case sorted: SupportsEvictByTimestamp => sorted.evictByTimestamp(until(by))
      case other => throw unknown(other)
    }
  }

  /** Forgets old rows and gives them; to be read to the end. */
  def removed(): Iterator[KeyToValuePair] = removal.fold(Iterator.empty[KeyToValuePair]) { by =>
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
    val predicate = Predicate.create(by.expr, if (isOfKey(by)) Nil else input)
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
  /** Whether rows of these columns come too late. */
  def lateness(input: Seq[Attribute], watermark: Option[Long], conf: SQLConf): BasePredicate = {
    val several = !conf.getConf(SQLConf.STATEFUL_OPERATOR_ALLOW_MULTIPLE)
    val time = WatermarkSupport.findEventTimeColumn(input, allowMultipleEventTimeColumns = several)
    Predicate.create(WatermarkSupport.watermarkExpression(time, watermark).getOrElse(Literal(false)), input)
  }

  def ordinalOfWatermark(keys: Seq[Expression]): Option[Int] = keys.zipWithIndex.collectFirst {
    case (key: NamedExpression, ordinal) if key.metadata.contains(EventTimeWatermark.delayKey) => ordinal
  }
}
