package org.apache.spark.sql.tailrace.metrics

import java.util.{Iterator => JIterator}

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.metric.CustomTaskMetric
import org.apache.spark.sql.connector.write._
import org.apache.spark.sql.tailrace.origin.CurrentRow

/** A sink's own write, which reads the clock before and after each row. */
final class TimedWrite(write: BatchWrite, epochLatency: EpochLatency, stage: Int) extends BatchWrite {
  override def createBatchWriterFactory(info: PhysicalWriteInfo): DataWriterFactory =
    new TimedWriterFactory(write.createBatchWriterFactory(info), epochLatency, stage)

  override def useCommitCoordinator(): Boolean = write.useCommitCoordinator()
  override def onDataWriterCommit(message: WriterCommitMessage): Unit = write.onDataWriterCommit(message)
  override def commit(messages: Array[WriterCommitMessage]): Unit = write.commit(messages)
  override def commit(messages: Array[WriterCommitMessage], summary: WriteSummary): Unit =
    write.commit(messages, summary)
  override def abort(messages: Array[WriterCommitMessage]): Unit = write.abort(messages)
  override def toString: String = write.toString
}

private final class TimedWriterFactory(factory: DataWriterFactory, epochLatency: EpochLatency, stage: Int)
    extends DataWriterFactory {
  override def createWriter(partition: Int, task: Long): DataWriter[InternalRow] = {
    val writer = factory.createWriter(partition, task)
    val probe = SinkProbe.ofThisTask(stage)
    // By then, the writer's commit has waited for all acknowledgements.
    TaskContext.get().addTaskCompletionListener[Unit] { _ =>
      probe.foreachEndToEnd((bucket, count) => epochLatency.add((bucket, count)))
    }
    new TimedWriter(writer, probe, KafkaAcknowledgements.of(writer, probe).orNull)
  }
}

private final class TimedWriter(
    writer: DataWriter[InternalRow],
    probe: SinkProbe,
    acknowledgements: KafkaAcknowledgements)
    extends DataWriter[InternalRow] {
  private val current = CurrentRow.ofThisTask()

  override def write(row: InternalRow): Unit = {
    probe.counted()
    if (current.weight > 0) {
      timed(row)
    } else {
      writer.write(row)
    }
  }

  private def timed(row: InternalRow): Unit = {
    val weight = current.weight
    val recordedAt = current.recordedAt
    val handedAt = MicroClock.now()
    val series = probe.hands(handedAt)
    if (acknowledgements != null) {
      acknowledgements.expect(series, recordedAt, handedAt, weight)
    }
    writer.write(row)
    val now = MicroClock.now()
    probe.called(now - handedAt, weight)
    if (acknowledgements != null) {
      acknowledgements.expectNone()
    } else {
      probe.delivered(series, recordedAt, now, weight)
    }
  }

  override def writeAll(rows: JIterator[InternalRow]): Unit = writer match {
    case background: FailsInBackground => background.guarded(super.writeAll(rows))
    case _ => super.writeAll(rows)
  }

  override def commit(): WriterCommitMessage = writer.commit()
  override def abort(): Unit = writer.abort()
  override def close(): Unit = writer.close()
  override def currentMetricsValues(): Array[CustomTaskMetric] = writer.currentMetricsValues()
}
