package org.apache.spark.sql.tailrace.epoch.overlap

import java.util.concurrent.{CompletableFuture, TimeUnit}

import org.apache.spark.sql.tailrace.epoch.context.EpochId

import tailrace.TailraceException

class HandOverSuite extends munit.FunSuite {
  private val id = EpochId("run", 7)
  private val first = HandOverKey.Reader(0, "topic", 0)
  private val second = HandOverKey.Reader(0, "topic", 1)
  private val neverCancelled = () => ()

  private final class Reader extends AutoCloseable {
    var isClosed = false
    override def close(): Unit = isClosed = true
  }

  test("a task keeps its reader if no epoch was announced, and then none can be") {
    val handOver = new HandOver(id)
    assert(!handOver.leave(first, new Reader))
    assert(!handOver.announce())
    assert(!handOver.leave(second, new Reader), "some tasks would hand over and others not")
    assert(!handOver.close())
  }

  test("an epoch that was announced gets every reader, in whichever order they come") {
    val handOver = new HandOver(id)
    assert(handOver.announce())
    val (one, other) = (new Reader, new Reader)
    assert(handOver.leave(first, one))
    assert(!handOver.hasBegun)
    assert(handOver.take(first, neverCancelled) eq one)
    assert(handOver.hasBegun)
    assert(handOver.close(), "the next epoch goes on though this one has ended")
    assert(handOver.leave(second, other))
    assert(handOver.take(second, neverCancelled) eq other)
  }

  test("it is announced once, and not after the epoch has ended") {
    val handOver = new HandOver(id)
    assert(handOver.announce())
    assert(!handOver.announce())
    val ended = new HandOver(id)
    assert(!ended.close())
    assert(!ended.announce())
  }

  test("the successor waits for the reader") {
    val handOver = new HandOver(id)
    handOver.announce()
    val taken = CompletableFuture.supplyAsync(() => handOver.take(first, neverCancelled))
    val reader = new Reader
    handOver.leave(first, reader)
    assert(taken.get(1, TimeUnit.MINUTES) eq reader)
  }

  test("a task that is tried again after it has handed over is refused") {
    val handOver = new HandOver(id)
    handOver.announce()
    handOver.refuseRetry(first)
    handOver.leave(first, new Reader)
    assertEquals(refusal(handOver.refuseRetry(first)), "TAILRACE_RETRY_AFTER_HAND_OVER")
    handOver.take(first, neverCancelled)
    assertEquals(refusal(handOver.refuseRetry(first)), "TAILRACE_RETRY_AFTER_HAND_OVER")
    assertEquals(refusal(handOver.leave(first, new Reader)), "TAILRACE_RETRY_AFTER_HAND_OVER")
  }

  test("a successor that is tried again after it has taken over is refused") {
    val handOver = new HandOver(id)
    handOver.announce()
    handOver.leave(first, new Reader)
    handOver.take(first, neverCancelled)
    assertEquals(refusal(handOver.take(first, neverCancelled)), "TAILRACE_RETRY_AFTER_HAND_OVER")
  }

  test("a task that failed before it handed over may be tried again") {
    val handOver = new HandOver(id)
    handOver.announce()
    handOver.refuseRetry(first)
    handOver.refuseRetry(first)
    assert(handOver.leave(first, new Reader))
  }

  test("a successor that is given up waits no longer, and what was left to it is closed") {
    val handOver = HandOvers.begin(id)
    handOver.announce()
    val waiting = CompletableFuture.supplyAsync(() => handOver.take(second, neverCancelled))
    val reader = new Reader
    handOver.leave(first, reader)
    HandOvers.discard(handOver)
    assert(reader.isClosed)
    intercept[java.util.concurrent.ExecutionException](waiting.get(1, TimeUnit.MINUTES))
    assert(!handOver.leave(second, new Reader), "the task closes it itself")
    HandOvers.end(id)
  }

  test("a successor that is cancelled waits no longer") {
    val handOver = new HandOver(id)
    handOver.announce()
    intercept[IllegalArgumentException](handOver.take(first, () => throw new IllegalArgumentException))
  }

  test("nothing is remembered of a run that has ended") {
    val handOvers = Seq(id, id.next).map(HandOvers.begin)
    val reader = new Reader
    handOvers.head.announce()
    handOvers.head.leave(first, reader)
    HandOvers.begin(EpochId("another", 7))
    HandOvers.endAll("run")
    assert(reader.isClosed)
    assertEquals(Seq(id, id.next).flatMap(HandOvers.of), Nil)
    assert(HandOvers.of(EpochId("another", 7)).isDefined)
    HandOvers.endAll("another")
  }

  private def refusal(body: => Any): String = intercept[TailraceException](body).getCondition
}
