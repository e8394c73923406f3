package org.apache.spark.sql.tailrace.sink.postgresql

import java.util.concurrent.{Executors, ExecutorService}

import scala.collection.mutable
import scala.util.control.NonFatal

import org.apache.spark.SparkContext
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.internal.Logging
import org.apache.spark.sql.tailrace.origin.{ReplayedRows, RowKey}
import org.apache.spark.sql.tailrace.sink.dedup.WrittenRows
import org.apache.spark.sql.tailrace.sink.replay.{ReadableRecords, SourceOffsets}
import org.apache.spark.sql.tailrace.sink.replay.SourceOffsets.{NoSource, SourceOffsets}

/**
 * Driver-side: what the sink remembers from epoch to epoch during a run.
 *
 * @param lastCommitted the newest epoch in Spark's commit log
 * @param rowsAtStart  what the journal held when the run started
 * @param untilAtStart by source partition, the last record of which any of these rows can be replayed
 */
private[postgresql] final class PostgresqlRun(
    context: SparkContext,
    query: String,
    val number: Long,
    val target: EpochTarget,
    lastCommitted: () => Option[Long],
    isSameQueryAtStart: Boolean,
    rowsAtStart: WrittenRows,
    untilAtStart: SourceOffsets)
    extends Logging {
  private var unreplayed: Option[(Broadcast[WrittenRows], SourceOffsets)] = None
  private var isReadBackOld = false
  private val background: ExecutorService = Executors.newSingleThreadExecutor { (work: Runnable) =>
    val thread = new Thread(work, "tailrace-postgresql-journal")
    thread.setDaemon(true)
    thread
  }
  replaceRows(rowsAtStart, untilAtStart)

  /** False if another query wrote some of the rows that are still to be replayed. */
  def isSameQuery: Boolean = isSameQueryAtStart || unreplayed.isEmpty

  /** The rows that the table holds of the epochs to come; none if all of them have been replayed. */
  def rows: Option[Broadcast[WrittenRows]] = unreplayed.map(_._1)

  /** By source partition, the last record of which the table already holds a row that will be replayed. */
  def replayUntil: SourceOffsets = unreplayed.fold(NoSource)(_._2)

  /** What an epoch with these start offsets replays of [[rows]]. */
  def rowsToReplay(starts: SourceOffsets): Option[ReplayedRows] =
    unreplayed.map { case (rows, until) => RowsToReplay(rows, ReadableRecords(starts, until)) }

  /** Forgets what cannot be replayed by this epoch, which has these start offsets. */
  def startEpoch(epoch: Long, starts: SourceOffsets): Unit = {
    unreplayed.foreach { case (broadcast, until) =>
      if (!SourceOffsets.anyAtOrAfter(until, starts) && !broadcast.value.hasRowsMadeByTime(epoch)) {
        unreplayed = None
        broadcast.destroy()
      } else if (isReadBackOld) {
        // An epoch of this run ended before everything was replayed: what was written meanwhile counts as well.
        replaceRows(readBack(), until)
      }
    }
    if (unreplayed.isEmpty) {
      background.execute(() => purge())
    }
  }

  def commitEpoch(hasRetries: Boolean): Unit = {
    isReadBackOld = !hasRetries
    if (hasRetries) {
      // The epoch may have ended before the retry got as far as the failed attempt: the next epoch replays the rest.
      val rows = readBack()
      replaceRows(rows, rows.lastOffsets)
    }
  }

  def close(): Unit = {
    background.shutdownNow()
    unreplayed.foreach(_._1.destroy())
    Connections.close(target.options.server)
  }

  private def readBack(): WrittenRows = Retries.inTransaction(target.options) { connection =>
    new WrittenRows(target.state.readJournal(connection, query, target.table.oid)._1)
  }

  private def replaceRows(rows: WrittenRows, until: SourceOffsets): Unit = {
    unreplayed.foreach(_._1.destroy())
    unreplayed = Option.when(!rows.isEmpty)((context.broadcast(rows), until))
    isReadBackOld = false
  }

  /**
   * Forgets epochs that can never be replayed. In the background: no epoch waits for it, and the next one tries again.
   * Spark may write its commit log in the background too, so the log itself is asked.
   */
  private def purge(): Unit =
    try lastCommitted().foreach { last =>
        Retries.inTransaction(target.options)(target.state.purge(_, query, number, before = last + 1))
      }
    catch { case NonFatal(failure) => logWarning(s"The journal could not be shortened: ${failure.getMessage}") }
}

/** The rows of the table that an epoch replays, because it reads these records. */
private final case class RowsToReplay(rows: Broadcast[WrittenRows], records: ReadableRecords) extends ReplayedRows {
  override def ofTask(task: Int): Iterator[RowKey] = rows.value.byTask(task).collect {
    case row if records.contain(row.source, row.row.offset) => RowKey(row.source, row.row.offset, row.row.path)
  }
}

/** Driver-side: the sink's state of each run that writes to it. */
private[postgresql] object PostgresqlRuns {
  private val runs = mutable.HashMap.empty[String, PostgresqlRun]

  def getOrStart(run: String)(start: => PostgresqlRun): PostgresqlRun =
    synchronized(runs.get(run)).getOrElse {
      val started = start
      synchronized(runs.put(run, started))
      started
    }

  def close(run: String): Unit = synchronized(runs.remove(run)).foreach(_.close())
}
