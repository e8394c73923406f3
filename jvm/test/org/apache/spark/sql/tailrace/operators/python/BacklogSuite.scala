package org.apache.spark.sql.tailrace.operators.python

import java.util.concurrent.{CompletableFuture, TimeUnit}
import java.util.concurrent.atomic.AtomicReference

import scala.collection.mutable

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{GenericInternalRow, UnsafeRow}
import org.apache.spark.sql.tailrace.origin.{CurrentRow, Origin}

class BacklogSuite extends munit.FunSuite {
  private val Ms = TimeUnit.MILLISECONDS.toNanos(1)

  test("all waiting rows go as one batch") {
    val backlog = new Bench()
    backlog.add(3)
    assertEquals(backlog.send(), 3)
    assertEquals(backlog.claim().map(_.entries.length), None)
  }

  test("rows wait until the worker has begun, which is part of its time") {
    val backlog = new Bench(startsHeld = true)
    backlog.now = 5
    assertEquals(backlog.atWorkNanos, 0L)
    backlog.add(2)
    backlog.now = 8
    assertEquals(backlog.claim().map(_.entries.length), None)
    assertEquals(backlog.atWorkNanos, 3L)
    val sending = blocked(backlog.awaitAllSent())
    backlog.release()
    assert(sending.get())
    assertEquals(backlog.send(), 2)
    assertEquals(backlog.atWorkNanos, 0L)
  }

  test("only one thread sends at a time") {
    val backlog = new Bench()
    backlog.add(1)
    assert(backlog.claim().isDefined)
    backlog.add(300)
    assert(backlog.claim().isEmpty)
    backlog.sent()
    assert(backlog.claim().isDefined)
  }

  test("a few rows wait until the worker is idle") {
    val backlog = new Bench()
    backlog.add(1)
    backlog.send()
    backlog.add(2)
    assertEquals(backlog.claim().map(_.entries.length), None)
    assert(!backlog.workerIsIdle)
    backlog.answered(1)
    assert(backlog.workerIsIdle)
    assertEquals(backlog.send(), 2)
  }

  test("under load a second batch is sent ahead, but no third") {
    val backlog = new Bench()
    backlog.add(48)
    assertEquals(backlog.send(), 16)
    assertEquals(backlog.send(), 16)
    assertEquals(backlog.claim().map(_.entries.length), None)
  }

  test("batches grow while the worker is quick, up to the limit") {
    val backlog = new Bench(maxRowsPerBatch = 50)
    backlog.add(1000)
    assertEquals(Seq.fill(4)(backlog.process(1 * Ms)), Seq(16, 32, 50, 50))
  }

  test("batches shrink to what the worker does in five milliseconds") {
    val backlog = new Bench()
    backlog.add(1000)
    assertEquals(Seq.fill(2)(backlog.process(20 * Ms)), Seq(16, 4))
    assertEquals(Seq.fill(2)(backlog.process(7 * Ms)), Seq(1, 1))
  }

  test("the time that a batch waits behind another is not its own") {
    val backlog = new Bench()
    backlog.add(32)
    backlog.send()
    backlog.send()
    backlog.now += 3 * Ms
    backlog.taken()
    backlog.now += 2 * Ms
    assertEquals(backlog.atWorkNanos, 2 * Ms)
    backlog.taken()
    assertEquals(backlog.busy.toList, List(3 * Ms, 2 * Ms))
    assertEquals(backlog.atWorkNanos, 0L)
  }

  test("results are counted off the batches in order") {
    val backlog = new Bench()
    backlog.add(32)
    backlog.send()
    backlog.send()
    backlog.answered(15)
    assertEquals(backlog.atWork.map(_.unanswered), Some(1))
    backlog.answered(2)
    assertEquals(backlog.atWork.map(_.unanswered), Some(15))
    assertEquals(backlog.busy.length, 1)
  }

  test("the source waits when too many rows are waiting") {
    val backlog = new Bench()
    backlog.add(4095)
    assert(!backlog.awaitRoom())
    backlog.add(1)
    assert(backlog.awaitRoom(), "rows are to be sent first")
    backlog.send()
    backlog.send()
    assert(!backlog.awaitRoom())
  }

  test("the source waits when too many bytes are waiting") {
    val backlog = new Bench()
    backlog.add(3, bytes = 1 << 20)
    assert(!backlog.awaitRoom())
    backlog.add(1, bytes = 1 << 20)
    assert(backlog.awaitRoom())
  }

  test("a source that waits goes on when the worker has answered") {
    val backlog = new Bench()
    backlog.add(4096 + 32)
    backlog.send()
    backlog.send()
    val source = blocked(backlog.awaitRoom())
    backlog.answered(16)
    assertEquals(source.get(60, TimeUnit.SECONDS), true)
  }

  test("a source that waits goes on when the backlog is closed") {
    val backlog = new Bench()
    backlog.add(4096 + 32)
    backlog.send()
    backlog.send()
    val source = blocked(backlog.awaitRoom())
    backlog.close()
    assertEquals(source.get(60, TimeUnit.SECONDS), false)
  }

  test("the end waits for the rows that another thread sends") {
    val backlog = new Bench()
    backlog.add(1)
    backlog.claim()
    val end = blocked(backlog.awaitAllSent())
    backlog.sent()
    assertEquals(end.get(60, TimeUnit.SECONDS), false)
  }

  test("the end is told of rows that are still to be sent") {
    val backlog = new Bench()
    backlog.add(1)
    assert(backlog.awaitAllSent())
    backlog.send()
    assert(!backlog.awaitAllSent())
  }

  test("a tick goes before waiting rows, one at a time") {
    val backlog = new Bench()
    backlog.add(1)
    assertEquals(backlog.claimTick(expectsRows = false).map(_.entries.length), Some(0))
    assert(backlog.claimTick(expectsRows = false).isEmpty, "one is being sent")
    backlog.sent()
    assert(backlog.claimTick(expectsRows = false).isEmpty, "one is on its way")
    backlog.taken()
    assert(backlog.claimTick(expectsRows = false).isDefined)
  }

  test("a tick knows what is expected after it, however far the input has got meanwhile") {
    def tick(expected: Boolean, waiting: Boolean*): Boolean = {
      val backlog = new Bench()
      waiting.foreach(backlog.add(_))
      backlog.claimTick(expected).get.expectsRows
    }
    assert(tick(expected = true))
    assert(!tick(expected = false))
    assert(tick(expected = false, true, false), "a known row waits, the input has no other")
    assert(!tick(expected = true, false), "all known rows are on their way, and the epoch ends")
  }

  test("a batch expects what its last row does") {
    val backlog = new Bench()
    Seq(true, true, false).foreach(backlog.add(_))
    assertEquals(backlog.claim().map(_.expectsRows), Some(false))
  }

  test("there are no ticks once all is sent") {
    val backlog = new Bench()
    assert(!backlog.awaitAllSent())
    assert(backlog.claimTick(expectsRows = false).isEmpty)
  }

  test("a function that gives no results gets no more rows than can be kept") {
    val backlog = new Bench(keepsRows = true)
    val batches = mutable.Queue.empty[Batch]
    while (!backlog.holdsTooMany) {
      backlog.add(1)
      batches ++= backlog.claim()
      backlog.sent()
      backlog.taken()
      assert(batches.length <= 65536)
    }
    assertEquals(batches.length, 65536)
    assert(backlog.owesResults)
    backlog.add(1)
    assert(backlog.claim().isEmpty)
    backlog.settled(batches.dequeue())
    assert(backlog.claim().isDefined)
  }

  test("rows that need not be kept are not owed") {
    val backlog = new Bench()
    backlog.add(1)
    backlog.send()
    assert(!backlog.owesResults)
  }

  /** A backlog with a clock that the test moves. */
  private class Bench(
      maxRowsPerBatch: Int = Int.MaxValue,
      keepsRows: Boolean = false,
      startsHeld: Boolean = false) {
    var now = 0L
    val busy = mutable.ArrayBuffer.empty[Long]
    val backlog = new Backlog(maxRowsPerBatch, keepsRows, busy += _, () => now, startsHeld)

    def add(rows: Int, bytes: Int = 0): Unit = (1 to rows).foreach { _ =>
      backlog.add(new PendingRow(if (bytes == 0) new GenericInternalRow(0) else unsafe(bytes), origin(false)))
    }

    def add(expectsRows: Boolean): Unit = backlog.add(new PendingRow(new GenericInternalRow(0), origin(expectsRows)))

    private def origin(expectsRows: Boolean): Origin = {
      val current = new CurrentRow
      current.expectsRows = expectsRows
      current.keep()
    }

    def send(): Int = {
      val batch = backlog.claim().get
      backlog.sent()
      batch.entries.length
    }

    /** One batch, for which the worker takes so long. */
    def process(nanos: Long): Int = {
      val rows = send()
      now += nanos
      backlog.answered(rows)
      rows
    }

    private def unsafe(bytes: Int): InternalRow = {
      val row = new UnsafeRow(1)
      row.pointTo(new Array[Byte](bytes), bytes)
      row
    }
  }

  import scala.language.implicitConversions
  private implicit def backlogOf(bench: Bench): Backlog = bench.backlog

  /** Runs the body in a thread, and returns when that thread waits. */
  private def blocked(body: => Boolean): CompletableFuture[Boolean] = {
    val thread = new AtomicReference[Thread]
    val result = CompletableFuture.supplyAsync { () =>
      thread.set(Thread.currentThread())
      body
    }
    val deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(60)
    while (thread.get() == null || thread.get().getState != Thread.State.WAITING) {
      assert(!result.isDone, "it did not wait")
      assert(System.nanoTime() < deadline, "it neither waited nor ended")
      Thread.onSpinWait()
    }
    result
  }
}
