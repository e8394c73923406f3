package org.apache.spark.sql.tailrace.epoch.overlap

import scala.util.control.NonFatal

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.catalog.transactions.Transaction
import org.apache.spark.sql.connector.metric.CustomMetric
import org.apache.spark.sql.connector.write.{BatchWrite, PhysicalWriteInfoImpl, WriterCommitMessage}
import org.apache.spark.sql.execution.{SparkPlan, SQLExecution}
import org.apache.spark.sql.execution.datasources.v2.{StreamWriterCommitProgress, WriteToDataSourceV2Exec}
import org.apache.spark.sql.execution.metric.SQLMetrics
import org.apache.spark.sql.tailrace.epoch.context.Overlap

/**
 * Writes an epoch. Its job may have been started ahead, while the epoch before was running: then this adopts it.
 * Otherwise it submits the job as Spark does. Meanwhile the next epoch is started ahead.
 *
 * Spark's own streaming loop asks only this node to run, so nothing else has to know that epochs overlap.
 */
final class OverlappedWriteExec(
    batchWrite: BatchWrite,
    refreshCache: () => Unit,
    query: SparkPlan,
    writeMetrics: Seq[CustomMetric],
    transaction: Option[Transaction],
    private[overlap] val overlap: Overlap)
    extends WriteToDataSourceV2Exec(batchWrite, refreshCache, query, writeMetrics, transaction) {

  /** Of the query's own plan; a plan that was made ahead is only submitted. */
  override protected def run(): Seq[InternalRow] =
    try {
      val started = EpochsAhead.takeStarted(overlap.id)
      val job = started.getOrElse(submit())
      val isTakenOver = write(job, isAdopted = started.isDefined)
      if (isTakenOver) {
        EpochsAhead.letTasksSettle(job)
      }
      Nil
    } finally HandOvers.end(overlap.id.before)

  /** True if the next epoch has taken over. */
  private def write(job: EpochJob, isAdopted: Boolean): Boolean =
    try {
      val adopted = Option.when(isAdopted)(new AdoptedEpoch(job.write, this))
      adopted.foreach(_.bindWatermarks())
      val next = EpochsAhead.prepareNext(session, job, isComplete = adopted.forall(_.readsAllPartitions))
      job.await()
      val isTakenOver = next.epochEnded()
      adopted.foreach(_.merge())
      numOutputRowsMetric.add(job.rowsWritten)
      postMetrics(isAdopted)
      job.commit()
      refreshCache()
      commitProgress = Some(StreamWriterCommitProgress(job.rowsWritten))
      isTakenOver
    } catch {
      case failure: Throwable =>
        EpochsAhead.forget(job.id.run)
        abort(job, failure)
        throw failure
    }

  private def abort(job: EpochJob, failure: Throwable): Unit =
    try {
      job.cancel()
      job.abort()
    } catch { case NonFatal(second) => failure.addSuppressed(second) }

  /** For Spark's UI. It does not see the tasks of a job that was started ahead, so it is told all that they counted. */
  private def postMetrics(isAdopted: Boolean): Unit = {
    val execution = sparkContext.getLocalProperty(SQLExecution.EXECUTION_ID_KEY)
    val metrics =
      if (isAdopted) collect { case node => node.metrics.values }.flatten else Seq(numOutputRowsMetric)
    SQLMetrics.postDriverMetricUpdates(sparkContext, execution, metrics)
  }

  private[overlap] def submit(): EpochJob = {
    val rdd = query.execute()
    val tasks = rdd.getNumPartitions
    // Local values, so the closure does not hold the plan.
    val task = writingTask
    val (useCoordinator, metrics) = (batchWrite.useCommitCoordinator, customMetrics)
    val factory = batchWrite.createBatchWriterFactory(PhysicalWriteInfoImpl(tasks))
    val job = new EpochJob(this, tasks)
    job.submitted(sparkContext.submitJob(
      rdd,
      (rows: Iterator[InternalRow]) => {
        val result = task.run(factory, TaskContext.get(), rows, useCoordinator, metrics)
        (result.numRows, result.writerCommitMessage)
      },
      0 until tasks,
      (index: Int, result: (Long, WriterCommitMessage)) => job.taskEnded(index, result._1, result._2),
      ()))
    job
  }

  override def withTransaction(newTransaction: Option[Transaction]): OverlappedWriteExec =
    new OverlappedWriteExec(batchWrite, refreshCache, query, writeMetrics, newTransaction, overlap)

  override protected def withNewChildInternal(newChild: SparkPlan): OverlappedWriteExec =
    new OverlappedWriteExec(batchWrite, refreshCache, newChild, writeMetrics, transaction, overlap)

  override def nodeName: String = "OverlappedWrite"
  override protected def otherCopyArgs: Seq[AnyRef] = Seq(overlap)
}
