package tailrace

import java.util.{Collections, Map => JMap}

import org.apache.spark.{SPARK_VERSION, SparkContext}
import org.apache.spark.api.plugin.{DriverPlugin, ExecutorPlugin, PluginContext, SparkPlugin}
import org.apache.spark.sql.tailrace.Allowlist

/**
 * Tailrace's entry point in the driver. Spark refuses to start when this class is missing, which is
 * why the handshake and the handling of Spark's allowlist are here and not in the session extension,
 * whose absence Spark only logs.
 */
class TailracePlugin extends SparkPlugin {
  override def driverPlugin(): DriverPlugin = new TailraceDriverPlugin
  override def executorPlugin(): ExecutorPlugin = null
}

private class TailraceDriverPlugin extends DriverPlugin {
  override def init(context: SparkContext, plugin: PluginContext): JMap[String, String] = {
    Handshake.check(plugin.conf.getOption(Handshake.ClientVersionKey), SPARK_VERSION)
    Allowlist.handOver(context)
    Collections.emptyMap()
  }
}
