package org.apache.spark.sql.tailrace.epoch.overlap

import java.util.concurrent.ConcurrentHashMap

import org.apache.spark.SparkContext
import org.apache.spark.internal.Logging
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.RealTimeTrigger
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution
import org.apache.spark.sql.tailrace.epoch.context.EpochId
import org.apache.spark.sql.tailrace.epoch.drain.Drains
import org.apache.spark.sql.tailrace.metrics.{EpochSlots, LiveFigures}

/** On the driver: the epochs that are being started ahead, at most one for each run. */
private[epoch] object EpochsAhead extends Logging {
  // Planning takes tens of milliseconds, on a busy machine ten times as long.
  private val LongestLeadMs = 2000L
  // An epoch must be worth the overlap, and the driver has its own work to do in it.
  private val ShortestEpochMs = 2000L
  private val ShortestEpochKey = "spark.tailrace.testing.overlapShortestMs"
  // The driver's work would take the cores from the tasks that have just taken over. So it waits until they run evenly,
  // but not so long that much more would be read again after a failure.
  private val LongestRestMs = 250L

  private val current = new ConcurrentHashMap[String, EpochAhead]

  /** The job of this epoch, if it was started ahead. The live figures are told whether it was. */
  def takeStarted(id: EpochId): Option[EpochJob] = Option(current.remove(id.run)).flatMap { ahead =>
    val started = ahead.result.filterOrElse(job => !hasFailedToBegin(job), "its tasks could not be started ahead")
    LiveFigures.boundary(id.run, id.epoch, reason = started.left.toOption)
    started.toOption
  }

  /** Such as for want of slots. A job that fails later has read rows: then the query fails, as it would otherwise. */
  private def hasFailedToBegin(job: EpochJob): Boolean = {
    val before = HandOvers.of(job.id.before)
    val hasFailed = job.hasFailed && !before.exists(_.hasBegun)
    if (hasFailed) {
      before.foreach(HandOvers.discard)
    }
    hasFailed
  }

  /** True if this epoch has been started ahead, and so belongs to what a drain has to commit. */
  def isStarted(id: EpochId): Boolean = Option(current.get(id.run)).exists(_.epochEnded())

  /**
   * Starts the epoch after this one shortly before it ends. Called in the query's own thread.
   *
   * @param isComplete false if there are partitions that the job does not read; the next epoch then begins afresh
   */
  def prepareNext(session: SparkSession, job: EpochJob, isComplete: Boolean): EpochAhead = {
    val remainingMs = job.endsAtMs - System.currentTimeMillis()
    val shortestMs = session.conf.get(ShortestEpochKey, ShortestEpochMs.toString).toLong
    val ahead = new EpochAhead(
      job,
      // At the start of a run epochs are short and planning is slow, because the JVM is cold.
      leadMs = if (isShortened(job)) remainingMs else math.min(LongestLeadMs, remainingMs / 2),
      refusal = () =>
        if (!isComplete) Some("the source has new partitions")
        // The short epochs at the start of a run overlap like those that follow, so those find a warm JVM.
        else if (job.write.overlap.epochMs < shortestMs) Some(s"epochs are shorter than $shortestMs ms")
        else if (Drains.isAsked(job.id.run)) Some("the query is being drained")
        else slotsMissing(session, job),
      plan = () => PlanAhead(session, job))
    current.put(job.id.run, ahead)
    ahead.start()
    ahead
  }

  /** The driver leaves the cores to the tasks that have just taken over, before it commits and plans. */
  def letTasksSettle(job: EpochJob): Unit = {
    val restMs = math.min(LongestRestMs, durationMsOf(job) / 10)
    val leftMs = job.endsAtMs + restMs - System.currentTimeMillis()
    if (leftMs > 0 && !Drains.isAsked(job.id.run)) {
      Thread.sleep(leftMs)
    }
  }

  private def isShortened(job: EpochJob): Boolean = durationMsOf(job) < job.write.overlap.epochMs

  private def durationMsOf(job: EpochJob): Long = job.scans.map(_.batchDurationMs).min

  /** The run is over. */
  def forget(run: String): Unit = {
    Option(current.remove(run)).foreach(_.abandon())
    HandOvers.endAll(run)
  }

  /** Spark fails a query if the slots of one of its epochs are taken, so every query counts with all that it needs. */
  private def slotsMissing(session: SparkSession, job: EpochJob): Option[String] = {
    val context = session.sparkContext
    val needed = math.max(job.tasks, EpochSlots.of(job.id.run))
    val free = EpochJob.slots(context) - math.max(EpochSlots.held, runningTasks(context))
    if (needed > free) Some(s"both epochs at once need $needed more task slots, and $free are free")
    else if (isAnotherStarting(session)) Some("another query was about to start")
    else None
  }

  private def runningTasks(context: SparkContext): Int = {
    val tracker = context.statusTracker
    tracker.getActiveStageIds().flatMap(tracker.getStageInfo(_)).map(_.numActiveTasks()).sum
  }

  private def isAnotherStarting(session: SparkSession): Boolean =
    session.sharedState.activeStreamingQueries.values.toArray.exists {
      case query: StreamExecution =>
        query.trigger.isInstanceOf[RealTimeTrigger] && EpochSlots.of(query.runId.toString) == 0
      case _ => false
    }
}
