package org.apache.spark.sql.tailrace.sink.replay

import org.apache.spark.SparkContext
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.sql.tailrace.origin.{ReplayedRows, RowKey}
import org.apache.spark.sql.tailrace.sink.dedup.WrittenRows
import org.apache.spark.sql.tailrace.sink.replay.SourceOffsets.{NoSource, SourceOffsets}

/** Driver-side: the rows in the output that older runs wrote, recognized by origin, and not replayed yet. */
private[sink] final class UnreplayedRows(context: SparkContext) {
  // The next epoch may be planned in another thread.
  @volatile private var unreplayed: Option[(Broadcast[WrittenRows], SourceOffsets)] = None
  private var isReadBackOld = false

  def isEmpty: Boolean = unreplayed.isEmpty

  /** The rows that the output holds of the epochs to come; none if all of them have been replayed. */
  def rows: Option[Broadcast[WrittenRows]] = unreplayed.map(_._1)

  /** By source partition, the last record of which the output already holds a row that will be replayed. */
  def replayUntil: SourceOffsets = unreplayed.fold(NoSource)(_._2)

  /** What an epoch with these start offsets replays of [[rows]]. */
  def toReplay(starts: SourceOffsets): Option[ReplayedRows] =
    unreplayed.map { case (rows, until) => RowsToReplay(rows, ReadableRecords(starts, until)) }

  /**
   * Sets what the output holds.
   *
   * @param until by source partition, the last record of which any of these rows can be replayed
   */
  def replace(rows: WrittenRows, until: SourceOffsets): Unit = {
    unreplayed.foreach(_._1.destroy())
    unreplayed = Option.when(!rows.isEmpty)((context.broadcast(rows), until))
    isReadBackOld = false
  }

  /**
   * Forgets what cannot be replayed by this epoch, which has these start offsets.
   *
   * @param readBack what the output holds now. Used if an epoch of this run ended before everything was replayed: the
   *                 next one must know what was written meanwhile, and in which order
   */
  def startEpoch(epoch: Long, starts: SourceOffsets, readBack: => WrittenRows): Unit =
    unreplayed.foreach { case (broadcast, until) =>
      if (!SourceOffsets.anyAtOrAfter(until, starts) && !broadcast.value.hasRowsMadeByTime(epoch)) {
        unreplayed = None
        broadcast.destroy()
      } else if (isReadBackOld) {
        replace(readBack, until)
      }
    }

  /** @param isReadBack true if the rows have just been replaced, because a task was retried */
  def commitEpoch(isReadBack: Boolean): Unit = isReadBackOld = !isReadBack

  def close(): Unit = unreplayed.foreach(_._1.destroy())
}

/** The rows of the output that an epoch replays, because it reads these records. */
private final case class RowsToReplay(rows: Broadcast[WrittenRows], records: ReadableRecords) extends ReplayedRows {
  override def ofTask(task: Int): Iterator[RowKey] = rows.value.byTask(task).collect {
    case row if records.contain(row.source, row.row.offset) => RowKey(row.source, row.row.offset, row.row.path)
  }
}
