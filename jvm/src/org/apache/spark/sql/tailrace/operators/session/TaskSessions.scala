package org.apache.spark.sql.tailrace.operators.session

import scala.collection.mutable.ArrayBuffer

import org.apache.spark.sql.catalyst.expressions.{Attribute, Literal, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.execution.streaming.operators.stateful.StreamingSessionWindowStateManager
import org.apache.spark.sql.execution.streaming.state.StateStore
import org.apache.spark.sql.tailrace.operators.state.StateScans
import org.apache.spark.sql.tailrace.plan.SessionStatus

/**
 * The open sessions of one partition, in Spark's layout: the state's key is the session's keys and its start, and no
 * two sessions of the same keys touch.
 *
 * @param keys         the keys besides the window
 * @param statusColumn the column of the session's status; if set, sessions that are merged into another one are emitted
 *                     too
 */
private[session] final class TaskSessions(
    store: StateStore,
    scans: StateScans,
    manager: StreamingSessionWindowStateManager,
    keys: Seq[Attribute],
    window: WindowColumn,
    columns: Seq[Attribute],
    merger: SessionMerger,
    statusColumn: Option[Int]) {
  import window._

  private val keysOf = UnsafeProjection.create(keys, columns)
  private val stateKeyOf = UnsafeProjection.create(keys :+ Literal(0L), columns)

  private final class Kept(val stateKey: UnsafeRow, val session: UnsafeRow)

  var updated = 0L
  var removed = 0L

  /**
   * Adds a row, which is a session of its own unless it touches others. Returns the sessions that changed, newest last.
   */
  def add(row: UnsafeRow): Seq[UnsafeRow] = {
    val touched = touching(row)
    // Among sessions with the same start the new row comes last, so last(…) returns it.
    val inOrder = (touched.map(_.session) :+ row).sortBy(startOf)
    val (start, end) = (startOf(inOrder.head), inOrder.map(endOf).max)
    // Before the state is changed: if the merge fails, the state stays as it was.
    val merged = merger.merge(inOrder, start, end)
    val stateKey = stateKeyOf(row)
    stateKey.setLong(keys.length, start)
    val gone = touched.filter(kept => startOf(kept.session) != start)
    gone.foreach(kept => store.remove(kept.stateKey))
    store.put(stateKey, merged)
    updated += 1
    removed += gone.length
    val absorbed = if (statusColumn.isEmpty) Nil else gone.map(kept => withStatus(kept.session, SessionStatus.Merged))
    absorbed :+ withStatus(merged, SessionStatus.Open)
  }

  /** Removes closed sessions and returns them. To be read to the end. */
  def close(isClosed: UnsafeRow => Boolean): Iterator[UnsafeRow] =
    scans(manager.removeByValueCondition(store, isClosed)).map { session =>
      removed += 1
      session
    }

  // As in Spark, a session that starts when another one ends touches it.
  private def touching(row: UnsafeRow): Seq[Kept] = {
    val (start, end) = (startOf(row), endOf(row))
    val found = new ArrayBuffer[Kept](1)
    scans(store.prefixScan(keysOf(row))).foreach { pair =>
      if (startOf(pair.value) <= end && start <= endOf(pair.value)) {
        found += new Kept(pair.key.copy(), pair.value.copy())
      }
    }
    found.toSeq
  }

  private def withStatus(session: UnsafeRow, status: Int): UnsafeRow = {
    statusColumn.foreach(session.setInt(_, status))
    session
  }
}
