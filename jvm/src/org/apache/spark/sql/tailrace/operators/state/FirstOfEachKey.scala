package org.apache.spark.sql.tailrace.operators.state

import java.time.Duration

import org.apache.spark.sql.Encoders
import org.apache.spark.sql.streaming.{OutputMode, StatefulProcessor, TimeMode, TimerValues, TTLConfig, ValueState}

/** Passes the first row of a key, and forgets the key after `ttlMs`. */
private[state] final class FirstOfEachKey(ttlMs: Long) extends StatefulProcessor[Any, Any, Any] {
  @transient private var seen: ValueState[Boolean] = _

  override def init(outputMode: OutputMode, timeMode: TimeMode): Unit =
    seen = getHandle.getValueState("seen", Encoders.scalaBoolean, TTLConfig(Duration.ofMillis(ttlMs)))

  override def handleInputRows(key: Any, rows: Iterator[Any], timerValues: TimerValues): Iterator[Any] =
    if (seen.exists()) {
      Iterator.empty
    } else {
      seen.update(true)
      rows.take(1)
    }
}
