package org.apache.spark.sql.tailrace.operators.python

import scala.collection.mutable

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BoundReference, LessThanOrEqual, Literal, Predicate}
import org.apache.spark.sql.streaming.TimeMode
import org.apache.spark.sql.tailrace.ManualTime
import org.apache.spark.sql.tailrace.operators.state.{EventTime, MovingWatermark, TaskWatermark}
import org.apache.spark.sql.tailrace.origin.CurrentRow
import org.apache.spark.sql.types.LongType

class TimerScheduleSuite extends munit.FunSuite with ManualTime {
  private val Never = Long.MaxValue

  test("nothing is due before the task has its state") {
    val timers = new Bench(hasState = false)
    timers.register(100)
    clock().setTime(200)
    assertEquals((timers.schedule.hasBegun, timers.schedule.msUntilDue()), (false, Never))
    var dueWhenBegun = Never
    timers.schedule.whenBegun(() => dueWhenBegun = timers.schedule.msUntilDue())
    timers.begin()
    assertEquals((timers.schedule.hasBegun, timers.schedule.msUntilDue()), (true, 0L))
    assertEquals(dueWhenBegun, 0L, "rows must not be sent before the timers are known")
  }

  test("who comes late is told at once that it has begun") {
    var isTold = false
    new Bench(TimeMode.None()).schedule.whenBegun(() => isTold = true)
    assert(isTold)
  }

  test("the first timer of earlier epochs is known as soon as the state is there") {
    val timers = new Bench(hasState = false)
    timers.register(300, 200)
    timers.begin()
    assertEquals(timers.schedule.msUntilDue(), 200L)
    clock().setTime(200)
    assertEquals(timers.look(200), Seq(200L))
    // The scan for the first timer has not fired any.
    assertEquals(timers.floors.toList, List(None, None))
  }

  test("there is nothing to do without timers") {
    val timers = new Bench()
    timers.look(0)
    assertEquals(timers.schedule.msUntilDue(), Never)
  }

  test("the next timer is the first one that is not due") {
    val timers = new Bench()
    timers.register(500, 100, 300)
    clock().setTime(300)
    assertEquals(timers.look(300), Seq(100L, 300L))
    assertEquals(timers.schedule.msUntilDue(), 200L)
    clock().setTime(500)
    assertEquals(timers.schedule.msUntilDue(), 0L)
  }

  test("timers that fire after the rows are those that were due before, and none is announced") {
    val timers = new Bench(onlyUpTo = Some(200))
    timers.register(100, 200, 300)
    clock().setTime(500)
    assertEquals(timers.schedule.msUntilDue(), Never)
    assertEquals(timers.look(500), Seq(100L, 200L))
    assertEquals(timers.schedule.msUntilDue(), Never)
  }

  test("an earlier timer wakes, a later one does not") {
    val timers = new Bench(hasState = false)
    timers.register(500)
    timers.begin()
    assertEquals(timers.wakes, 0)
    timers.register(900)
    assertEquals(timers.wakes, 0)
    timers.register(200)
    assertEquals(timers.wakes, 1)
    assertEquals(timers.schedule.msUntilDue(), 200L)
  }

  test("timers that are registered while others fire are not forgotten") {
    val timers = new Bench()
    timers.register(50, 100, 900)
    clock().setTime(100)
    val due = timers.expired(100)
    assertEquals(due.next(), 50L)
    timers.register(400)
    assertEquals(due.toList, List(100L))
    assertEquals(timers.schedule.msUntilDue(), 300L)
  }

  test("a look goes on where the last one ended") {
    val timers = new Bench()
    timers.look(100)
    timers.look(200)
    assertEquals(timers.floors.toList, List(None, Some(100L)))
  }

  test("a look goes back to a timer that was registered in the past") {
    val timers = new Bench()
    clock().setTime(100)
    timers.look(100)
    timers.register(50)
    assertEquals(timers.schedule.msUntilDue(), 0L)
    assertEquals(timers.look(100), Seq(50L))
    assertEquals(timers.floors.last, Some(49L))
  }

  test("without a time mode nothing is ever due") {
    assertEquals(new Bench(TimeMode.None()).schedule.msUntilDue(), Never)
  }

  test("event-time timers are due by the watermark, not by the clock") {
    val timers = new Bench(TimeMode.EventTime(), new ProcessorWatermark(Some(100), None))
    timers.register(50, 200)
    assertEquals(timers.look(100), Seq(50L))
    clock().setTime(1000000)
    assertEquals(timers.schedule.msUntilDue(), Never)
  }

  test("a watermark that has advanced is due at once, until the worker knows it") {
    val moving = movingWatermark()
    val watermark = new ProcessorWatermark(Some(100), Some(moving))
    val timers = new Bench(TimeMode.EventTime(), watermark)
    timers.look(100)
    assertEquals(timers.schedule.msUntilDue(), Never)
    moving.watermark.observe(0, 300)
    clock().advance(1000)
    assertEquals(timers.schedule.msUntilDue(), 0L)
    assertEquals(watermark.readByWorker(), Some(300L))
    assertEquals(timers.schedule.msUntilDue(), Never)
  }

  test("a moving watermark is never behind Spark's") {
    val moving = movingWatermark()
    val watermark = new ProcessorWatermark(Some(500), Some(moving))
    moving.watermark.observe(0, 300)
    clock().advance(1000)
    assert(!watermark.hasAdvanced)
    assertEquals(watermark.watermarkMs, Some(500L))
  }

  test("rows behind a moving watermark are dropped, and moved it before they were judged") {
    val watermark = new ProcessorWatermark(None, Some(movingWatermark()))
    val current = new CurrentRow
    current.partitionIndex = 0
    var late = 0
    def inTime(timeMs: Long): Boolean =
      watermark.dropLate(Iterator(InternalRow(timeMs * 1000)), current, () => late += 1).hasNext
    assert(inTime(300))
    assert(inTime(100), "the watermark has not advanced yet")
    clock().advance(1000)
    assert(watermark.hasAdvanced)
    assertEquals(Seq(299L, 300L, 301L).map(inTime), Seq(false, false, true))
    assertEquals(late, 2)
  }

  test("Spark's own watermark drops no rows and is not read by the worker") {
    val watermark = new ProcessorWatermark(Some(500), None)
    assert(watermark.dropLate(Iterator(InternalRow(0L)), new CurrentRow, () => fail("late")).hasNext)
    assertEquals(watermark.readByWorker(), None)
    assert(!watermark.hasAdvanced)
  }

  /** Of rows with their time in the first column; what is not after the watermark is late. */
  private def movingWatermark(): MovingWatermarkInput = {
    val time = BoundReference(0, LongType, nullable = false)
    new MovingWatermarkInput(
      new MovingWatermark(new TaskWatermark(IndexedSeq(Some(0L)), idleAfterMs = 1000)),
      EventTime(0, isWindow = false, delayMs = 0),
      watermarkMs => Predicate.createInterpreted(LessThanOrEqual(time, Literal(watermarkMs * 1000))))
  }

  /** A schedule of timers that are kept here instead of in a state store. */
  private class Bench(
      mode: TimeMode = TimeMode.ProcessingTime(),
      watermark: ProcessorWatermark = new ProcessorWatermark(None, None),
      hasState: Boolean = true,
      onlyUpTo: Option[Long] = None) {
    val schedule = new TimerSchedule(mode, watermark, onlyUpTo)
    val floors = mutable.ArrayBuffer.empty[Option[Long]]
    var wakes = 0
    private val timers = mutable.TreeSet.empty[Long]
    if (hasState) {
      schedule.begin(Iterator.empty)
    }
    schedule.whenEarlier(() => wakes += 1)

    def begin(): Unit = schedule.begin(scan(None))

    def register(expiries: Long*): Unit = expiries.foreach { expiry =>
      timers += expiry
      schedule.registered(expiry)
    }

    def expired(untilMs: Long): Iterator[Long] = schedule.expired(scan, untilMs).map(_._2)

    private def scan(floor: Option[Long]): Iterator[(Any, Long)] = {
      floors += floor
      // As a store's, the scan does not see what is registered meanwhile.
      timers.rangeFrom(floor.fold(Long.MinValue)(_ + 1)).toList.iterator.map("key" -> _)
    }

    /** Takes the timers that are due, as a worker does. */
    def look(untilMs: Long): Seq[Long] = {
      val due = expired(untilMs).toList
      timers --= due
      due
    }
  }
}
