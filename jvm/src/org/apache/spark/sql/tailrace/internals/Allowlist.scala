package org.apache.spark.sql.tailrace.internals

import org.apache.logging.log4j.Level
import org.apache.logging.log4j.core.config.Configurator

import org.apache.spark.SparkContext
import org.apache.spark.internal.Logging
import org.apache.spark.sql.execution.streaming.runtime.RealTimeModeAllowlist
import org.apache.spark.sql.internal.{SQLConf, StaticSQLConf}

/**
 * Spark's allowlist of operators and sinks for Real-Time Mode is one switch for all of them, so it
 * must be off before Tailrace's own operators can run. It is switched off here, by the loaded
 * plugin, and only when the session extension that enforces Tailrace's registry will be there.
 */
object Allowlist extends Logging {

  def handOver(context: SparkContext, extension: String): Unit = {
    val key = SQLConf.STREAMING_REAL_TIME_MODE_ALLOWLIST_CHECK.key
    val extensions = context.conf.get(StaticSQLConf.SPARK_SESSION_EXTENSIONS).getOrElse(Nil)
    if (!extensions.contains(extension)) {
      logWarning("Tailrace's session extension is not configured: Spark's own allowlist stays in force.")
    } else if (!context.conf.contains(key)) {
      context.conf.set(key, "false")
      // Spark would warn of every operator that is ours; what it would warn of otherwise, Tailrace refuses.
      Configurator.setLevel(RealTimeModeAllowlist.getClass.getName.stripSuffix("$"), Level.ERROR)
    }
  }
}
