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
}
