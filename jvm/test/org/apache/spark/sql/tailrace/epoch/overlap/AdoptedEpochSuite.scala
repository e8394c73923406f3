package org.apache.spark.sql.tailrace.epoch.overlap

import tailrace.TailraceException

class AdoptedEpochSuite extends munit.FunSuite {
  private val Code = "TAILRACE_EPOCHS_DO_NOT_MEET"

  test("an epoch begins where the one before ended") {
    AdoptedEpoch.requireSameOffsets("""{"topic":{"0":17}}""", """{"topic":{"0":17}}""")
  }

  test("a gap, rows that were read twice, and a partition that is missing fail the query") {
    Seq("""{"topic":{"0":18,"1":3}}""", """{"topic":{"0":16,"1":3}}""", """{"topic":{"0":17}}""").foreach { began =>
      val refused = intercept[TailraceException](
        AdoptedEpoch.requireSameOffsets(began, """{"topic":{"0":17,"1":3}}"""))
      assertEquals(refused.getCondition, Code)
    }
  }

  test("a plan of the same shape is adopted") {
    AdoptedEpoch.requireSameShape(Seq("Write()", "Scan(int)"), Seq("Write()", "Scan(int)"))
  }

  test("a plan of another shape is not") {
    Seq(Seq("Write()"), Seq("Write()", "Scan(long)"), Seq("Write()", "Project(int)", "Scan(int)")).foreach { ran =>
      val refused =
        intercept[TailraceException](AdoptedEpoch.requireSameShape(ran, Seq("Write()", "Scan(int)")))
      assertEquals(refused.getCondition, Code)
    }
  }

  private val committed = Seq(Seq("a"), Seq("b"))
  private val continued = Seq(StateBase(0, 7, Seq("a")), StateBase(1, 7, Seq("b")))

  test("the state of an epoch continues from the checkpoints of the one before, in whichever order tasks end") {
    AdoptedEpoch.requireSameState(0, continued, 7, committed)
    AdoptedEpoch.requireSameState(0, continued.reverse, 7, committed)
  }

  test("other state fails the query") {
    val (first, second) = (continued.head, continued(1))
    Seq(
      "another checkpoint" -> Seq(first, second.copy(checkpoint = Seq("c"))),
      "no checkpoint" -> Seq(first, second.copy(checkpoint = Nil)),
      "an older version" -> Seq(first, second.copy(version = 6)),
      "a partition is missing" -> Seq(first),
      "a partition was committed twice" -> Seq(first, first, second),
      "a partition too many" -> (continued :+ StateBase(2, 7, Seq("c"))),
      "checkpoints of other partitions" -> Seq(first.copy(checkpoint = Seq("b")), second.copy(checkpoint = Seq("a")))
    ).foreach { case (what, bases) =>
      assertEquals(refusal(AdoptedEpoch.requireSameState(0, bases, 7, committed)), Code, what)
    }
  }

  test("each store of a join continues from its own checkpoint") {
    val ofStores = Seq("left keys", "left rows", "right keys", "right rows")
    AdoptedEpoch.requireSameState(0, Seq(StateBase(0, 7, ofStores)), 7, Seq(ofStores))
    Seq(ofStores.updated(2, "others"), ofStores.reverse, ofStores.take(1)).foreach { others =>
      val bases = Seq(StateBase(0, 7, others))
      assertEquals(refusal(AdoptedEpoch.requireSameState(0, bases, 7, Seq(ofStores))), Code)
    }
  }

  test("nothing is taken on trust where Spark has no checkpoint") {
    assertEquals(refusal(AdoptedEpoch.requireSameState(0, Nil, 7, Nil)), Code)
    assertEquals(refusal(AdoptedEpoch.requireSameState(0, Seq(StateBase(0, 7, Nil)), 7, Seq(Nil))), Code)
  }

  private def refusal(body: => Any): String = intercept[TailraceException](body).getCondition
}
