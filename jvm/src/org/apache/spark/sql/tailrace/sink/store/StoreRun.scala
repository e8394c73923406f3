package org.apache.spark.sql.tailrace.sink.store

import java.util.concurrent.{Executors, ExecutorService}

import scala.util.control.NonFatal

import org.apache.spark.SparkContext
import org.apache.spark.internal.Logging
import org.apache.spark.sql.tailrace.sink.dedup.WrittenRows
import org.apache.spark.sql.tailrace.sink.replay.SourceOffsets.SourceOffsets
import org.apache.spark.sql.tailrace.sink.replay.UnreplayedRows

/**
 * Driver-side: what the sink remembers from epoch to epoch during a run.
 *
 * @param lastCommitted the newest epoch in Spark's commit log
 * @param rowsAtStart   what the journal held when the run started
 * @param untilAtStart  by source partition, the last record of which any of these rows can be replayed
 */
private[sink] final class StoreRun[C, R <: StoreRow](
    context: SparkContext,
    query: String,
    val number: Long,
    val store: Store[C, R],
    lastCommitted: () => Option[Long],
    isSameQueryAtStart: Boolean,
    rowsAtStart: WrittenRows,
    untilAtStart: SourceOffsets)
    extends Logging {
  val unreplayed = new UnreplayedRows(context)
  private val background: ExecutorService = Executors.newSingleThreadExecutor { (work: Runnable) =>
    val thread = new Thread(work, "tailrace-sink-journal")
    thread.setDaemon(true)
    thread
  }
  unreplayed.replace(rowsAtStart, untilAtStart)

  /** False if another query wrote some of the rows that are still to be replayed. */
  def isSameQuery: Boolean = isSameQueryAtStart || unreplayed.isEmpty

  /** Forgets what cannot be replayed by this epoch, which has these start offsets. */
  def startEpoch(epoch: Long, starts: SourceOffsets): Unit = {
    unreplayed.startEpoch(epoch, starts, readBack())
    if (unreplayed.isEmpty) {
      background.execute(() => purge())
    }
  }

  def commitEpoch(epoch: Long, tasks: Seq[TaskCommit]): Unit = {
    store.endEpoch(query, number, epoch, tasks)
    val hasRetries = tasks.exists(_.isRetry)
    unreplayed.commitEpoch(isReadBack = hasRetries)
    if (hasRetries) {
      // The epoch may have ended before the retry got as far as the failed attempt: the next epoch replays the rest.
      val rows = readBack()
      unreplayed.replace(rows, rows.lastOffsets)
    }
  }

  def close(): Unit = {
    background.shutdownNow()
    unreplayed.close()
    Connections.close(store.server)
  }

  private def readBack(): WrittenRows = Retries.inTransaction(store.server, store.retryMs) { connection: C =>
    new WrittenRows(store.readJournal(connection, query).rows)
  }

  /**
   * Forgets epochs that can never be replayed. In the background: no epoch waits for it, and the next one tries again.
   * Spark may write its commit log in the background too, so the log itself is asked.
   */
  private def purge(): Unit =
    try lastCommitted().foreach { last =>
        Retries.inTransaction(store.server, store.retryMs)((connection: C) =>
          store.purge(connection, query, number, before = last + 1))
      }
    catch { case NonFatal(failure) => logWarning(s"The journal could not be shortened: ${failure.getMessage}") }
}
