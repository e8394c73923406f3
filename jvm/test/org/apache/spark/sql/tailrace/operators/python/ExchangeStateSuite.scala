package org.apache.spark.sql.tailrace.operators.python

import org.apache.spark.sql.tailrace.operators.python.ExchangeState._

class ExchangeStateSuite extends munit.FunSuite {
  private val reason = new RuntimeException("the source failed")
  private val undecided: Seq[ExchangeState] = Seq(Starting, Exchanging, InputEnded, Broken)
  private val decided: Seq[ExchangeState] =
    Seq(Finished(inSync = true), Finished(inSync = false), FeederFailed(reason), Killed)

  test("a normal exchange sends its command, its input and its end, and then reads the worker's end") {
    assertEquals(Starting.commandSent, Exchanging)
    assertEquals(Exchanging.endSent, InputEnded)
    assertEquals(InputEnded.workerEnded, Finished(inSync = true))
  }

  test("only Exchanging accepts input") {
    assertEquals((undecided ++ decided).filter(_.acceptsInput), Seq(Exchanging))
  }

  test("a function may return before it has read its input, or before the feeder knows that it runs") {
    assertEquals(Exchanging.workerEnded, Finished(inSync = true))
    assertEquals(Starting.workerEnded, Finished(inSync = true))
    assertEquals(Starting.workerEnded.commandSent, Finished(inSync = true))
    assertEquals(Exchanging.workerEnded.endSent, Finished(inSync = true))
  }

  test("a cut-off message breaks the exchange, in either direction") {
    Seq(Starting, Exchanging, InputEnded).foreach { state =>
      assertEquals(state.sendingFailed, Broken)
      assertEquals(state.readingFailed, Broken)
    }
  }

  test("a broken exchange does not start or end its input") {
    assertEquals(Broken.commandSent, Broken)
    assertEquals(Broken.endSent, Broken)
  }

  test("a worker that ends after a cut-off message is out of sync") {
    assertEquals(Broken.workerEnded, Finished(inSync = false))
    assertEquals(Finished(inSync = true).sendingFailed, Finished(inSync = false))
  }

  test("the feeder's failure is known in every state, unless the worker was killed before") {
    (undecided :+ Finished(inSync = true)).foreach { state =>
      assertEquals(state.feederFailed(reason), FeederFailed(reason))
    }
    assertEquals(Killed.feederFailed(reason), Killed)
  }

  test("the first failure of the feeder stays") {
    assertEquals(FeederFailed(reason).feederFailed(new RuntimeException("another")), FeederFailed(reason))
  }

  test("killing the worker decides the exchange, but does not change an outcome") {
    undecided.foreach(state => assertEquals(state.workerKilled, Killed))
    decided.foreach(state => assertEquals(state.workerKilled, state))
  }

  test("no event leads from an outcome back to an open exchange") {
    for (state <- decided; next <- Seq(state.commandSent, state.endSent, state.readingFailed, state.workerEnded)) {
      assertEquals(next, state)
    }
  }
}
