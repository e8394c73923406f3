package tailrace

import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.tailrace.{CheckRealTimePlan, CheckRealTimeSink}

/**
 * What Tailrace adds to a session, in the order in which a query meets it:
 *
 *  1. [[CheckRealTimeSink]]: at `start()`, refuses a sink that cannot serve Real-Time Mode.
 *  1. [[CheckRealTimePlan]]: before each epoch, refuses operators that would hold rows back.
 *
 * Both stand in for Spark's allowlist, which [[TailracePlugin]] hands over.
 */
class TailraceExtensions extends (SparkSessionExtensions => Unit) {
  override def apply(extensions: SparkSessionExtensions): Unit = {
    // The batch for hints is the only injected one that still sees the statement with its trigger:
    // Spark's own resolution rules come before all others and drop it.
    extensions.injectHintResolutionRule(_ => CheckRealTimeSink)
    // Runs after exchanges are planned and before Spark marks them as pipelined.
    extensions.injectColumnar(_ => CheckRealTimePlan.AsColumnarRule)
  }
}
