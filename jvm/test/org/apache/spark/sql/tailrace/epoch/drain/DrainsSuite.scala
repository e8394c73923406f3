package org.apache.spark.sql.tailrace.epoch.drain

import java.util.concurrent.{CompletableFuture, TimeUnit}

class DrainsSuite extends munit.FunSuite {
  override def beforeEach(context: BeforeEach): Unit = Drains.reset()
  override def afterEach(context: AfterEach): Unit = Drains.reset()

  test("an epoch passes if its run is not to be drained") {
    Drains.ask("another")
    Drains.passOrWait("run", epoch = 7)
    assert(!Drains.isAsked("run"))
    assertEquals(Drains.heldBefore("run"), -1L)
  }

  test("the open epoch ends although the request was withdrawn: some of its readers may have ended") {
    Drains.ask("run")
    Drains.withdraw("run")
    assert(Drains.isAsked("run"))
    assertEquals(Drains.all, Set("run"))
  }

  test("the epoch after it begins, and lasts") {
    Drains.ask("run")
    Drains.withdraw("run")
    Drains.passOrWait("run", epoch = 8)
    assert(!Drains.isAsked("run"))
  }

  test("no epoch begins until the request is withdrawn") {
    Drains.ask("run")
    val passed = CompletableFuture.runAsync(() => Drains.passOrWait("run", epoch = 8))
    while (Drains.heldBefore("run") != 8L) Thread.onSpinWait()
    assert(!passed.isDone)
    Drains.withdraw("run")
    passed.get(2, TimeUnit.MINUTES)
    assert(!Drains.isAsked("run"))
  }

  test("a run that is over is forgotten") {
    Drains.ask("run")
    Drains.forget("run")
    assert(!Drains.isAsked("run"))
    Drains.passOrWait("run", epoch = 8)
  }
}
