package org.apache.spark.sql.tailrace.operators.join

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Add, AttributeReference, Literal}
import org.apache.spark.sql.catalyst.plans.logical.EventTimeWatermark
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{LongType, MetadataBuilder, StringType, TimestampType}

class SideTimesSuite extends munit.FunSuite {
  private val key = AttributeReference("key", StringType)()
  private val marked = new MetadataBuilder().putLong(EventTimeWatermark.delayKey, 10000L).build()
  private val time = AttributeReference("time", TimestampType, nullable = true, marked)()

  test("a row is late if its time is not after the watermark") {
    val isLate = SideTimes.lateness(Seq(key, time), Some(5000L), new SQLConf)
    val late = Seq(4999999L, 5000000L, 5000001L).map(micros => isLate.eval(InternalRow(null, micros)))
    assertEquals(late, Seq(true, true, false))
  }

  test("no row is late without a watermark, or without a time") {
    assert(!SideTimes.lateness(Seq(key, time), None, new SQLConf).eval(InternalRow(null, 0L)))
    assert(!SideTimes.lateness(Seq(key), Some(5000L), new SQLConf).eval(InternalRow(null)))
  }

  test("the key that has the watermark") {
    assertEquals(SideTimes.ordinalOfWatermark(Seq(key, time)), Some(1))
    assertEquals(SideTimes.ordinalOfWatermark(Seq(key)), None)
    assertEquals(SideTimes.ordinalOfWatermark(Seq(Add(Literal(1L), AttributeReference("n", LongType)()))), None)
  }
}
