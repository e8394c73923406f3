package org.apache.spark.sql.tailrace.operators.python

import java.util.concurrent.TimeUnit.NANOSECONDS
import java.util.concurrent.atomic.AtomicReference

import org.apache.spark.sql.tailrace.operators.python.ExchangeState._

/**
 * The current [[ExchangeState]], and whether the task has asked the exchange to stop. A stop can be asked for in every
 * state: the exchange then has `graceMs` to bring the worker to an orderly end.
 */
private[python] final class ExchangeLifecycle(graceMs: Long, nanoTime: () => Long = () => System.nanoTime()) {
  private val current = new AtomicReference[ExchangeState](Starting)
  private val stopRequestedNanos = new AtomicReference[Option[Long]](None)

  def state: ExchangeState = current.get()

  def commandSent(): Unit = transition(_.commandSent)
  def endSent(): Unit = transition(_.endSent)
  def sendingFailed(): Unit = transition(_.sendingFailed)
  def readingFailed(): Unit = transition(_.readingFailed)
  def workerEnded(): Unit = transition(_.workerEnded)
  def feederFailed(reason: Throwable): Unit = transition(_.feederFailed(reason))
  def workerKilled(): Unit = transition(_.workerKilled)

  private def transition(next: ExchangeState => ExchangeState): Unit = current.updateAndGet(state => next(state))

  def isFinished: Boolean = state.isInstanceOf[Finished]

  def feederFailure: Option[Throwable] = state match {
    case FeederFailed(reason) => Some(reason)
    case _ => None
  }

  /** True if a batch or a tick may be sent now. */
  def acceptsInput: Boolean = state.acceptsInput

  /** True for the first caller only. */
  def requestStop(): Boolean = stopRequestedNanos.compareAndSet(None, Some(nanoTime()))

  def isStopping: Boolean = stopRequestedNanos.get().isDefined

  /** Grants the whole grace period from now on: the time until the feeder ended was not the worker's fault. */
  def restartGracePeriod(): Unit = stopRequestedNanos.set(Some(nanoTime()))

  /** What is left of the grace period; unlimited before a stop. */
  def graceMsLeft: Long = stopRequestedNanos.get() match {
    case Some(since) => graceMs - NANOSECONDS.toMillis(nanoTime() - since)
    case None => Long.MaxValue
  }
}
