package org.apache.spark.sql.tailrace.sink.kafka

import org.apache.spark.broadcast.Broadcast
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.write.DataWriter
import org.apache.spark.sql.connector.write.streaming.StreamingDataWriterFactory
import org.apache.spark.sql.tailrace.errors.ErrorPolicy
import org.apache.spark.sql.tailrace.sink.dedup._
import org.apache.spark.sql.tailrace.sink.kafka.Offsets.OutputOffsets
import org.apache.spark.sql.tailrace.sink.replay.MatchesByTask
import org.apache.spark.sql.types.StructType
import org.apache.spark.util.SerializableConfiguration

/**
 * The run that writes.
 *
 * @param attempt counts the runs that have worked on the epoch that was open when this run started, including this one
 */
final case class WriterIdentity(query: String, run: String, attempt: Int) {
  def transactionalId(task: Int): String = WriterIdentity.transactionalId(query, task)
}

object WriterIdentity {
  def transactionalId(query: String, task: Int): String = s"tailrace-$query-$task"
}

/**
 * How rows are written.
 *
 * @param lastExecutors by task, the executor that wrote its part of the last epoch
 */
final case class OutputSettings(
    options: SinkOptions,
    schema: StructType,
    onError: ErrorPolicy,
    lastExecutors: Map[Int, String])

/**
 * What the output already holds of the epoch.
 *
 * @param rows            the rows that may be replayed, if rows are recognized by origin
 * @param matches         the rows that may be replayed, if they are recognized by content
 * @param compactedTopics output topics that Kafka compacts
 * @param isSameQuery     false if another query may have written some of these rows: a row with another content is then
 *                        a new one
 * @param takesOver       true if the tasks start while the epoch before is still being written
 */
final case class ReplayContext(
    strategy: DeduplicationStrategy,
    rows: Option[Broadcast[WrittenRows]],
    matches: Option[Broadcast[MatchesByTask]],
    compactedTopics: Set[String],
    isSameQuery: Boolean,
    takesOver: Boolean)

/**
 * Where and how the query's output is read back.
 *
 * @param starts where the output of this epoch begins
 * @param secret authenticates the query's records; see [[RecordMac]]
 */
final case class ReadBackContext(
    checkpoint: String,
    hadoop: Broadcast[SerializableConfiguration],
    starts: OutputOffsets,
    readCommitted: Boolean,
    secret: SinkSecret) {
  def log: OutputLog = new OutputLog(checkpoint, hadoop.value.value)
}

/** Everything that the tasks of an epoch need in order to write. */
final case class EpochWriteContext(
    identity: WriterIdentity,
    output: OutputSettings,
    replay: ReplayContext,
    readBack: ReadBackContext)
    extends StreamingDataWriterFactory {

  override def createWriter(partition: Int, task: Long, epoch: Long): DataWriter[InternalRow] =
    new ExactlyOnceWriter(this, partition, epoch)

  /** Chosen once per task. If the task is retried, this reads back what its earlier attempts wrote. */
  def deduplicator[C <: Candidate](task: Int, epoch: Long, taskAttempt: Int): Deduplicator[C] =
    if (replay.strategy == DeduplicationStrategy.ByContent) {
      if (taskAttempt > 0) {
        // Spark retries no task behind a shuffle, and there is one before any join. A new run reads back instead.
        throw new IllegalStateException("the task of a join cannot be retried within an epoch")
      }
      new DeduplicateByContent(replay.matches.fold(Seq.empty[ContentId])(_.value.of(task)))
    } else {
      Deduplicator.byOrigin(replay.strategy, writtenRows(task, taskAttempt), task, epoch, replay.isSameQuery)
    }

  private def writtenRows(task: Int, taskAttempt: Int): WrittenRows = {
    val ofOlderRuns = replay.rows.fold(WrittenRows.none)(_.value)
    if (taskAttempt == 0) ofOlderRuns
    // The output also has rows of the epoch before, and which of them are this epoch's is not known yet.
    else if (replay.takesOver) throw new IllegalStateException("a task that takes over cannot be retried")
    else {
      val late = if (output.options.isTransactional) LateRecords.none else LateRecords.ofTask(task)
      val reader = new OutputReadBack(output.options, readBack.readCommitted)
      val own = new OwnRecords(identity.query, readBack.secret, byContent = false)
      ofOlderRuns ++ reader.readSince(readBack.log.startOffsets(readBack.starts), own, late).rows
    }
  }
}
