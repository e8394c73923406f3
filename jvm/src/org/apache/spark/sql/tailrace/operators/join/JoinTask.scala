package org.apache.spark.sql.tailrace.operators.join

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BasePredicate, GenericInternalRow, JoinedRow, UnsafeRow}
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOpStateStoreCheckpointInfo
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinHelper.{
  JoinStateStoreCkptInfo, JoinStateWatermarkPredicates
}
import org.apache.spark.sql.execution.streaming.operators.stateful.join.SymmetricHashJoinStateManager
import org.apache.spark.sql.execution.streaming.operators.stateful.join.SymmetricHashJoinStateManager.KeyToValuePair
import org.apache.spark.sql.execution.streaming.state.StateStoreMetrics
import org.apache.spark.util.CompletionIterator
import org.apache.spark.sql.tailrace.operators.input.InputRow
import org.apache.spark.sql.tailrace.operators.state.StateScans

/** Joins the rows of one partition one by one, whichever side they come from. */
private[join] final class JoinTask(
    joinType: JoinType,
    left: JoinSideState,
    right: JoinSideState,
    leftColumns: Int,
    rightColumns: Int,
    matches: BasePredicate,
    scans: StateScans,
    stateFormatVersion: Int) {
  private val joined = new JoinedRow
  private val noLeft = new GenericInternalRow(leftColumns)
  private val noRight = new GenericInternalRow(rightColumns)

  var updatedRows = 0L
  var removedByMatches = 0L

  def isLate(arrival: InputRow): Boolean = sideOf(arrival).isLate.eval(arrival.row)

  /** The row's matches. When they have all been read, the row itself is added to the state. */
  def join(arrival: InputRow): Iterator[InternalRow] = {
    val (own, row, isLeft) = (sideOf(arrival), arrival.row.asInstanceOf[UnsafeRow], isLeftRow(arrival))
    if (!own.mayMatch.eval(row)) {
      if (isOuter(isLeft)) Iterator.single(unmatched(row, isLeft)) else Iterator.empty
    } else {
      val key = own.keyOf(row)
      val found = matchesOf(key, row, isLeft)
      val isMatched = found.hasNext
      CompletionIterator[InternalRow, Iterator[InternalRow]](
        resultsOf(row, isLeft, found),
        // A left semi join emits a row only once, so it is not needed any more.
        if (!(joinType == LeftSemi && isLeft && isMatched)) {
          own.state.append(key, row, isMatched)
          updatedRows += 1
        })
    }
  }

  private def matchesOf(key: UnsafeRow, row: UnsafeRow, isLeft: Boolean): Iterator[JoinedRow] = {
    def pair(other: InternalRow): JoinedRow =
      if (isLeft) joined.withLeft(row).withRight(other) else joined.withLeft(other).withRight(row)
    val others = (if (isLeft) right else left).state
    if (joinType == LeftSemi && !isLeft) {
      others.getJoinedRowsAndRemoveMatched(key, pair, matches.eval).map { found =>
        removedByMatches += 1
        found
      }
    } else {
      // As in Spark: only the newest state format skips the flag when it is not read.
      val readsMatchedFlag = isOuter(!isLeft)
      others.getJoinedRows(
        key,
        pair,
        matches.eval,
        skipUpdatingMatchedFlag = stateFormatVersion == 4 && !readsMatchedFlag)
    }
  }

  private def resultsOf(row: UnsafeRow, isLeft: Boolean, found: Iterator[JoinedRow]): Iterator[InternalRow] =
    if (joinType != LeftSemi) {
      found
    } else if (!isLeft) {
      found.map(_.getLeft)
    } else if (found.hasNext) {
      Iterator.single(row)
    } else {
      Iterator.empty
    }

  /** True if the side's rows are emitted even if they match nothing. */
  private def isOuter(isLeft: Boolean): Boolean = joinType match {
    case FullOuter => true
    case LeftOuter => isLeft
    case RightOuter => !isLeft
    case _ => false
  }

  private def unmatched(row: InternalRow, isLeft: Boolean): InternalRow =
    if (isLeft) joined.withLeft(row).withRight(noRight) else joined.withLeft(noLeft).withRight(row)

  /** Removes old rows from outer sides, and returns those that matched nothing. To be read to the end. */
  def outerRows(removal: JoinStateWatermarkPredicates): Iterator[InternalRow] = {
    def of(isLeft: Boolean): Iterator[InternalRow] =
      if (!isOuter(isLeft)) {
        Iterator.empty
      } else {
        val old = scans(if (isLeft) left.removed(removal.left) else right.removed(removal.right))
        old.filterNot(_.matched).map((row: KeyToValuePair) => unmatched(row.value, isLeft))
      }
    // One side after the other: both may be in one store, which is changed while it is read.
    of(isLeft = true) ++ of(isLeft = false)
  }

  /** Then removes old rows from the other sides, and returns their number. */
  def removeTheRest(removal: JoinStateWatermarkPredicates): Long =
    (if (isOuter(isLeft = true)) 0L else scans(left.remove(removal.left))) +
      (if (isOuter(isLeft = false)) 0L else scans(right.remove(removal.right)))

  def commit(hasOneStore: Boolean): Unit = {
    left.state.commit()
    if (!hasOneStore) {
      right.state.commit()
    }
  }

  def storeMetrics(hasOneStore: Boolean): StateStoreMetrics =
    if (hasOneStore) left.state.metrics else StateStoreMetrics.combine(Seq(left.state.metrics, right.state.metrics))

  def checkpointInfo(hasOneStore: Boolean): StatefulOpStateStoreCheckpointInfo =
    if (hasOneStore) {
      val store = left.state.getLatestCheckpointInfo().keyToNumValues
      StatefulOpStateStoreCheckpointInfo(
        store.partitionId,
        store.batchVersion,
        store.stateStoreCkptId.map(Array(_)),
        store.baseStateStoreCkptId.map(Array(_)))
    } else {
      SymmetricHashJoinStateManager.mergeStateStoreCheckpointInfo(
        JoinStateStoreCkptInfo(left.state.getLatestCheckpointInfo(), right.state.getLatestCheckpointInfo()))
    }

  private def isLeftRow(arrival: InputRow): Boolean = arrival.input == 0

  private def sideOf(arrival: InputRow): JoinSideState = if (isLeftRow(arrival)) left else right
}
