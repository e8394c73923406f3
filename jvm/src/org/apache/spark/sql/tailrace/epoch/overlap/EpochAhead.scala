package org.apache.spark.sql.tailrace.epoch.overlap

import java.util.concurrent.{CompletableFuture, CountDownLatch, TimeUnit}

import org.apache.spark.internal.Logging

/**
 * One attempt to start an epoch while the one before is running. A thread of its own waits until shortly before that
 * one ends, plans the epoch and submits its job, whose tasks connect to everything and then wait to take over.
 *
 * The thread is never interrupted: an interrupt in the middle of planning could leave a class of Spark's uninitialized
 * for good. It looks for itself whether it is still wanted.
 *
 * @param running the epoch before
 * @param leadMs  how long before its end to begin
 * @param refusal why not to start the epoch after all, asked shortly before
 * @param plan    the plan of the epoch
 */
private[overlap] final class EpochAhead(
    running: EpochJob,
    leadMs: Long,
    refusal: () => Option[String],
    plan: () => OverlappedWriteExec)
    extends Logging {
  import EpochAhead._

  private val outcome = new CompletableFuture[Either[String, EpochJob]]
  private val isUnwanted = new CountDownLatch(1)

  /** Local properties of the calling thread, such as the query's job group, are those of the new one too. */
  def start(): Unit = {
    val thread = new Thread(() => run(), s"tailrace-epoch-ahead-${running.id.next.epoch}")
    thread.setDaemon(true)
    thread.start()
  }

  /** The epoch before has ended. True if this one has taken over, or is about to. */
  def epochEnded(): Boolean = {
    val isAnnounced = running.handOver.close()
    if (!isAnnounced) {
      isUnwanted.countDown()
    }
    isAnnounced
  }

  /** The job, or why there is none. To be asked when the epoch before has ended. */
  def result: Either[String, EpochJob] =
    if (epochEnded()) outcome.get() else Left(if (outcome.isDone) outcome.get().left.getOrElse(TooLate) else TooLate)

  /** The epoch will not be needed: the query fails or stops. */
  def abandon(): Unit = {
    isUnwanted.countDown()
    HandOvers.discard(running.handOver)
    Option(outcome.getNow(null)).foreach(_.foreach(discard))
  }

  private def run(): Unit = {
    val result = attempt()
    outcome.complete(result)
    // Looked at after it is known: either this thread or the one that abandons the epoch cancels its job.
    if (isUnwanted.getCount == 0) {
      result.foreach(discard)
    }
  }

  private def discard(job: EpochJob): Unit = {
    job.cancel()
    HandOvers.end(job.id)
  }

  private def attempt(): Either[String, EpochJob] =
    try {
      if (isUnwantedAt(running.endsAtMs - leadMs)) Left(EndedEarly)
      else refusal() match {
        case Some(reason) => Left(reason)
        case None => submit(plan())
      }
    } catch {
      case failure: Throwable =>
        HandOvers.discard(running.handOver)
        logWarning("The next epoch could not be started ahead, and starts when this one has ended", failure)
        Left(s"planning ahead failed: $failure")
    }

  private def submit(write: OverlappedWriteExec): Either[String, EpochJob] =
    if (running.handOver.announce()) Right(write.submit()) else Left(TooLate)

  private def isUnwantedAt(timeMs: Long): Boolean =
    isUnwanted.await(math.max(0L, timeMs - System.currentTimeMillis()), TimeUnit.MILLISECONDS)
}

private[overlap] object EpochAhead {
  private[overlap] val TooLate = "the driver was too slow to plan the epoch ahead"
  private val EndedEarly = "the epoch before ended early"
}
