package tailrace.testing

import org.apache.spark.sql.{DataFrame, Encoder, Encoders, Row}
import org.apache.spark.sql.functions.col
import org.apache.spark.sql.streaming._
import org.apache.spark.sql.types._

/** Says "seen" of each row, and "over" when no row of its key has come for so long. */
class Deadlines[K](afterMs: Long) extends StatefulProcessor[K, Row, Row] {
  @transient private var due: ValueState[Long] = _

  override def init(outputMode: OutputMode, timeMode: TimeMode): Unit =
    due = getHandle.getValueState("due", Encoders.scalaLong, TTLConfig.NONE)

  override def handleInputRows(key: K, rows: Iterator[Row], timerValues: TimerValues): Iterator[Row] = {
    val count = rows.size
    if (due.exists()) {
      getHandle.deleteTimer(due.get())
    }
    due.update(timerValues.getCurrentProcessingTimeInMs() + afterMs)
    getHandle.registerTimer(due.get())
    Iterator.single(Row(key.toString, s"seen $count", 0L))
  }

  override def handleExpiredTimer(key: K, timerValues: TimerValues, timer: ExpiredTimerInfo): Iterator[Row] = {
    due.clear()
    Iterator.single(Row(key.toString, "over", System.currentTimeMillis() - timer.getExpiryTimeInMs()))
  }
}

object Deadlines {
  private val result = Encoders.row(StructType.fromDDL("key STRING, event STRING, late_ms LONG"))

  /** By a column of texts or of numbers. */
  def of(rows: DataFrame, key: String, afterMs: Long): DataFrame = rows.schema(key).dataType match {
    case LongType => by[Long](rows, key, afterMs, _.getLong(0))(Encoders.scalaLong)
    case _ => by[String](rows, key, afterMs, _.getString(0))(Encoders.STRING)
  }

  private def by[K: Encoder](rows: DataFrame, key: String, afterMs: Long, keyOf: Row => K): DataFrame =
    rows.select(col(key)).groupByKey(keyOf)
      .transformWithState(new Deadlines[K](afterMs), TimeMode.ProcessingTime(), OutputMode.Update())(result)
}
