package org.apache.spark.sql.tailrace

import org.apache.spark.sql.execution.datasources.v2.LowLatencyClock
import org.apache.spark.util.{ManualClock, SystemClock}

/** Gives each test a clock that stands still until the test moves it. It begins at 0. */
trait ManualTime { self: munit.FunSuite =>
  protected val clock: Fixture[ManualClock] = new Fixture[ManualClock]("clock") {
    private var manual: ManualClock = _

    def apply(): ManualClock = manual

    override def beforeEach(context: BeforeEach): Unit = {
      manual = new ManualClock(0)
      LowLatencyClock.setClock(manual)
    }

    override def afterEach(context: AfterEach): Unit = LowLatencyClock.setClock(new SystemClock)
  }

  override def munitFixtures: Seq[Fixture[_]] = Seq(clock)
}
