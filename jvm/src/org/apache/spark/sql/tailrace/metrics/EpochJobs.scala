package org.apache.spark.sql.tailrace.metrics

import java.util.concurrent.ConcurrentHashMap

import org.apache.spark.scheduler.{SparkListener, SparkListenerJobEnd, SparkListenerJobStart}
import org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution

/** Tells [[LiveFigures]] when the job of each epoch began and ended. Between two jobs, the driver itself works. */
final class EpochJobs extends SparkListener {
  private val running = new ConcurrentHashMap[Int, (String, Long)]

  override def onJobStart(job: SparkListenerJobStart): Unit =
    for {
      properties <- Option(job.properties)
      run <- Option(properties.getProperty(TaskIdentity.RunKey))
      epoch <- Option(properties.getProperty(MicroBatchExecution.BATCH_ID_KEY)).flatMap(_.toLongOption)
      if LiveFigures.isRealTime(run)
    } {
      running.put(job.jobId, (run, epoch))
      EpochSlots.jobStarted(run, job.jobId, job.stageInfos.map(_.numTasks).sum)
      LiveFigures.launched(run, epoch, job.time)
    }

  override def onJobEnd(job: SparkListenerJobEnd): Unit =
    Option(running.remove(job.jobId)).foreach { case (run, epoch) =>
      EpochSlots.jobEnded(run, job.jobId)
      LiveFigures.finished(run, epoch, job.time)
    }
}
