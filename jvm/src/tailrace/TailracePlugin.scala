package tailrace

import java.util.{Collections, Map => JMap}

import org.apache.spark.{SPARK_VERSION, SparkContext}
import org.apache.spark.api.plugin.{DriverPlugin, ExecutorPlugin, PluginContext, SparkPlugin}
import org.apache.spark.sql.tailrace.conf.TailraceConf
import org.apache.spark.sql.tailrace.internals.Allowlist
import org.apache.spark.sql.tailrace.epoch.drain.{DrainPoll, Drains, WhichDrains}
import org.apache.spark.sql.tailrace.metrics.{EpochJobs, LiveFigures, Report, Reporter}
import org.apache.spark.sql.tailrace.operators.python.WorkerSockets

/**
 * Tailrace's entry point in the driver and the executors. Spark refuses to start if this class is missing, but only
 * logs a missing session extension. So the handshake and the handling of Spark's allowlist are here.
 */
class TailracePlugin extends SparkPlugin {
  override def driverPlugin(): DriverPlugin = new TailraceDriverPlugin
  override def executorPlugin(): ExecutorPlugin = new TailraceExecutorPlugin
}

private class TailraceDriverPlugin extends DriverPlugin {
  override def init(context: SparkContext, plugin: PluginContext): JMap[String, String] = {
    Handshake.check(plugin.conf.getOption(TailraceConf.ClientVersion.key), SPARK_VERSION)
    TailraceConf.check(plugin.conf.getAll)
    Allowlist.handOver(context, classOf[TailraceExtensions].getName)
    LiveFigures.reset()
    Drains.reset()
    context.addSparkListener(new EpochJobs)
    if (WorkerSockets.open(plugin.conf)) Collections.singletonMap(WorkerSockets.PrivateKey, "true")
    else Collections.emptyMap()
  }

  override def receive(message: Any): AnyRef = message match {
    case report: Report =>
      LiveFigures.received(report)
      null
    case WhichDrains => Drains.all.toArray
    case _ => null
  }

  override def shutdown(): Unit = LiveFigures.reset()
}

private class TailraceExecutorPlugin extends ExecutorPlugin {
  private var reporter: Option[Reporter] = None
  private var drainPoll: Option[DrainPoll] = None

  override def init(context: PluginContext, settings: JMap[String, String]): Unit = {
    if (settings.containsKey(WorkerSockets.PrivateKey)) {
      WorkerSockets.openInExecutor(context)
    }
    reporter = Some(new Reporter(context))
    reporter.foreach(_.start())
    drainPoll = Some(new DrainPoll(context))
    drainPoll.foreach(_.start())
  }

  override def shutdown(): Unit = {
    drainPoll.foreach(_.stop())
    reporter.foreach(_.stop())
  }
}
