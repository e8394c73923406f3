package org.apache.spark.sql.tailrace.sink.kafka

import org.apache.spark.broadcast.Broadcast
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.write.DataWriter
import org.apache.spark.sql.connector.write.streaming.StreamingDataWriterFactory
import org.apache.spark.sql.types.StructType
import org.apache.spark.util.SerializableConfiguration
import org.apache.spark.sql.tailrace.errors.ErrorPolicy

/**
 * What the tasks of an epoch need to know.
 *
 * @param attempt       how many runs have worked on the epoch that was open when this one began, this one included
 * @param written       what they have written; null if nothing, or if it is behind us
 * @param byContent     whether rows are known again by their content alone
 * @param matches       what is there of such rows and may come again; null if nothing
 * @param beginnings    by topic and partition, where the output of this epoch begins
 * @param lastExecutors by task, where its last epoch was written
 */
final case class EpochWriteContext(
    options: SinkOptions,
    schema: StructType,
    query: String,
    run: String,
    attempt: Int,
    isStateful: Boolean,
    compacted: Set[String],
    onError: ErrorPolicy,
    readCommitted: Boolean,
    written: Broadcast[WrittenRows],
    byContent: Boolean,
    matches: Broadcast[WrittenMatches],
    beginnings: Map[String, Map[String, Long]],
    lastExecutors: Map[Int, String],
    checkpoint: String,
    hadoop: Broadcast[SerializableConfiguration])
    extends StreamingDataWriterFactory {

  override def createWriter(partition: Int, task: Long, epoch: Long): DataWriter[InternalRow] =
    new ExactlyOnceWriter(this, partition)

  def transactionalId(task: Int): String = EpochWriteContext.transactionalId(query, task)

  def log: OutputLog = new OutputLog(checkpoint, hadoop.value.value)

  def matchesBefore(task: Int): Seq[ContentId] = if (matches == null) Nil else matches.value.of(task)

  /** A task that is repeated within the epoch has to look for itself what the attempt before it has written. */
  def writtenBefore(task: Int, taskAttempt: Int): WrittenRows = {
    val ofOtherRuns = if (written == null) WrittenRows.nothing else written.value
    if (taskAttempt == 0) ofOtherRuns
    else {
      val late = if (options.isTransactional) LateRecords.none else LateRecords.ofTask(task)
      ofOtherRuns ++ new OutputReadBack(options, readCommitted).since(log.beginnings(beginnings), query, late).rows
    }
  }
}

object EpochWriteContext {
  def transactionalId(query: String, task: Int): String = s"tailrace-$query-$task"
}
