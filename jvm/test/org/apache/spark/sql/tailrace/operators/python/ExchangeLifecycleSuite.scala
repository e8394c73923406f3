package org.apache.spark.sql.tailrace.operators.python

import java.util.concurrent.TimeUnit

class ExchangeLifecycleSuite extends munit.FunSuite {
  private val Ms = TimeUnit.MILLISECONDS.toNanos(1)
  private var now = 0L

  private def newLifecycle(): ExchangeLifecycle = {
    now = 0
    new ExchangeLifecycle(graceMs = 1000, () => now)
  }

  test("it follows the events") {
    val lifecycle = newLifecycle()
    assert(!lifecycle.acceptsInput)
    lifecycle.commandSent()
    assert(lifecycle.acceptsInput)
    lifecycle.endSent()
    assert(!lifecycle.acceptsInput)
    lifecycle.workerEnded()
    assert(lifecycle.isFinished)
  }

  test("it keeps the feeder's failure for the reader") {
    val (lifecycle, reason) = (newLifecycle(), new RuntimeException("the source failed"))
    lifecycle.commandSent()
    assertEquals(lifecycle.feederFailure, None)
    lifecycle.feederFailed(reason)
    lifecycle.workerKilled()
    assertEquals(lifecycle.feederFailure, Some(reason))
    assert(!lifecycle.acceptsInput)
    assert(!lifecycle.isFinished)
  }

  test("only the first stop counts, and it does not change the state") {
    val lifecycle = newLifecycle()
    lifecycle.commandSent()
    assert(!lifecycle.isStopping)
    assert(lifecycle.requestStop())
    assert(lifecycle.isStopping)
    assert(!lifecycle.requestStop())
    assertEquals(lifecycle.state, ExchangeState.Exchanging)
  }

  test("the grace period runs from the stop, or from where it is restarted") {
    val lifecycle = newLifecycle()
    now = 5000 * Ms
    assertEquals(lifecycle.graceMsLeft, Long.MaxValue)
    lifecycle.requestStop()
    now += 600 * Ms
    assertEquals(lifecycle.graceMsLeft, 400L)
    lifecycle.restartGracePeriod()
    now += 1001 * Ms
    assertEquals(lifecycle.graceMsLeft, -1L)
  }
}
