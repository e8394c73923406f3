package org.apache.spark.sql.tailrace.epoch.drain

import java.util.concurrent.TimeUnit

import scala.util.control.NonFatal

import org.apache.spark.SparkContext
import org.apache.spark.api.plugin.PluginContext
import org.apache.spark.internal.Logging
import org.apache.spark.util.ThreadUtils

/** What an executor asks the driver: which runs are to be drained. The answer is their ids. */
case object WhichDrains

/**
 * In an executor that is not the driver itself: learns which runs are to be drained. A plugin's messages go one way.
 */
final class DrainPoll(context: PluginContext) extends Logging {
  private val timer = ThreadUtils.newDaemonSingleThreadScheduledExecutor("tailrace-drain-poll")

  def start(): Unit =
    if (context.executorID() != SparkContext.DRIVER_IDENTIFIER) {
      timer.scheduleWithFixedDelay(() => ask(), PeriodMs, PeriodMs, TimeUnit.MILLISECONDS)
    }

  def stop(): Unit = timer.shutdownNow()

  private def ask(): Unit =
    try {
      context.ask(WhichDrains) match {
        case runs: Array[String] => Drains.learn(runs.toSet)
        case _ =>
      }
    } catch {
      // The driver is busy or gone; in either case there is nothing to drain yet.
      case NonFatal(failure) => logDebug("The driver did not say which queries to drain", failure)
    }

  private val PeriodMs = 200L
}
