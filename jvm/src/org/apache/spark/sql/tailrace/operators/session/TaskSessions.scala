package org.apache.spark.sql.tailrace.operators.session

import scala.collection.mutable.ArrayBuffer

import org.apache.spark.sql.catalyst.expressions.{Attribute, Literal, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.execution.streaming.operators.stateful.StreamingSessionWindowStateManager
import org.apache.spark.sql.execution.streaming.state.StateStore
import org.apache.spark.sql.tailrace.plan.SessionStatus

/**
 * The open sessions of one partition, in Spark's layout: a session is found by its keys and its start, and no two of the same
 * keys touch each other.
 *
 * @param keys         the others that sessions are told apart by
 * @param statusColumn where a session says that it is open; with it, sessions that become part of another one are told of as well
 */
private[session] final class TaskSessions(
    store: StateStore,
    manager: StreamingSessionWindowStateManager,
    keys: Seq[Attribute],
    window: WindowColumn,
    columns: Seq[Attribute],
    merger: SessionMerger,
    statusColumn: Option[Int]) {
  import window._

  private val keysOf = UnsafeProjection.create(keys, columns)
  private val placeOf = UnsafeProjection.create(keys :+ Literal(0L), columns)

  private final class Kept(val place: UnsafeRow, val session: UnsafeRow)

  var updated = 0L
  var removed = 0L

  /** Adds a row, which is a session by itself as long as no other one touches it. Gives what has changed, the newest last. */
  def add(row: UnsafeRow): Seq[UnsafeRow] = {
    val touched = touching(row)
    // Of those that begin together the row is the last: it is what last(…) gives.
    val inOrder = (touched.map(_.session) :+ row).sortBy(startOf)
    val (start, end) = (startOf(inOrder.head), inOrder.map(endOf).max)
    // Before anything is changed: what cannot be merged leaves the state as it was.
    val merged = merger.merge(inOrder, start, end)
    val place = placeOf(row)
    place.setLong(keys.length, start)
    val gone = touched.filter(kept => startOf(kept.session) != start)
    gone.foreach(kept => store.remove(kept.place))
    store.put(place, merged)
    updated += 1
    removed += gone.length
    val told = if (statusColumn.isEmpty) Nil else gone.map(kept => withStatus(kept.session, SessionStatus.Merged))
    told :+ withStatus(merged, SessionStatus.Open)
  }

  /** Forgets sessions and gives them; to be read to the end. */
  def close(isOver: UnsafeRow => Boolean): Iterator[UnsafeRow] =
    manager.removeByValueCondition(store, isOver).map { session =>
      removed += 1
      session
    }

  // As Spark has it, sessions touch each other also if one begins when the other ends.
  private def touching(row: UnsafeRow): Seq[Kept] = {
    val (start, end) = (startOf(row), endOf(row))
    val found = new ArrayBuffer[Kept](1)
    store.prefixScan(keysOf(row)).foreach { pair =>
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
