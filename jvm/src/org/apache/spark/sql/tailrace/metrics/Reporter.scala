package org.apache.spark.sql.tailrace.metrics

import java.util.concurrent.TimeUnit

import scala.util.control.NonFatal

import org.apache.spark.api.plugin.PluginContext
import org.apache.spark.internal.Logging
import org.apache.spark.util.ThreadUtils

/** In each executor: sends what its tasks recorded to the driver, once a second. */
final class Reporter(context: PluginContext) extends Logging {
  private val health = new JvmHealth
  private val timer = ThreadUtils.newDaemonSingleThreadScheduledExecutor("tailrace-reporter")

  def start(): Unit = {
    health.start()
    timer.scheduleAtFixedRate(() => report(), PeriodMs, PeriodMs, TimeUnit.MILLISECONDS)
  }

  def stop(): Unit = {
    timer.shutdownNow()
    health.stop()
  }

  private def report(): Unit =
    try {
      MicroClock.set()
      context.send(
        Report(
          context.executorID(),
          ExecutorFigures.takeSeries(),
          ExecutorFigures.takeReads(),
          ExecutorFigures.takeWrites(),
          ExecutorFigures.takeBadRecords(),
          health.take()))
    } catch {
      // The driver of an executor that is being shut down may be gone.
      case NonFatal(failure) => logDebug("The latency figures of the last second could not be sent", failure)
    }

  private val PeriodMs = 1000L
}
