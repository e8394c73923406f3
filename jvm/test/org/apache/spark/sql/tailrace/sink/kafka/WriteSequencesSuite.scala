package org.apache.spark.sql.tailrace.sink.kafka

class WriteSequencesSuite extends munit.FunSuite {
  private def numbered(run: String, attempt: Int = 0)(write: (() => Long) => Unit): Unit = {
    val sequence = WriteSequences.acquire(run, 3, attempt)
    try write(() => sequence.getAndIncrement())
    finally WriteSequences.release(run, 3)
  }

  test("epochs that overlap share the numbers of a task") {
    numbered("a") { first =>
      assertEquals(first(), 0L)
      numbered("a") { second =>
        assertEquals(Seq(first(), second(), second()), Seq(1L, 2L, 3L))
      }
    }
  }

  test("an epoch that begins after the one before has ended begins at 0, and runs are apart") {
    numbered("b")(next => assertEquals(next(), 0L))
    numbered("b") { next =>
      assertEquals(next(), 0L)
      numbered("c")(other => assertEquals(other(), 0L))
    }
  }

  test("later attempts have higher numbers") {
    numbered("d", attempt = 1)(next => assertEquals(next(), 1L << 40))
  }

  test("the earlier offset of each partition that both know") {
    val ends = Map("t" -> Map("0" -> 10L, "1" -> 20L, "2" -> 5L), "u" -> Map("0" -> 1L))
    val begun = Map("t" -> Map("0" -> 8L, "1" -> 30L))
    assertEquals(Offsets.earlier(ends, begun), Map("t" -> Map("0" -> 8L, "1" -> 20L)))
  }
}
