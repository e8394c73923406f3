package org.apache.spark.sql.tailrace.errors

import java.util.UUID

import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap
import org.apache.spark.sql.execution.{LocalTableScanExec, SparkPlan}

import tailrace.TailraceException

class ErrorPolicySuite extends munit.FunSuite {
  private val query = UUID.fromString("00000000-0000-0000-0000-000000000007")
  private val plan: SparkPlan = LocalTableScanExec(Nil, Nil, None)

  test("without an option, a bad record ends the query") {
    assertEquals(policy(), ErrorPolicy.Fail)
    assert(!policy().skipsBadRecords)
    assertEquals(policy("onError" -> "fail", "errorsPerMinute" -> "3"), ErrorPolicy.Fail)
  }

  test("drop has a limit per minute") {
    assertEquals(policy("onError" -> "drop"), ErrorPolicy.Drop(60))
    assertEquals(policy("onError" -> " drop ", "errorsPerMinute" -> " 5 "), ErrorPolicy.Drop(5))
    assert(policy("onError" -> "drop").skipsBadRecords)
  }

  test("a dead letter needs a topic") {
    val letter = policy("onError" -> "dead-letter", "deadLetterTopic" -> " bad ", "errorsPerMinute" -> "7")
    assertEquals(letter, ErrorPolicy.DeadLetter("bad", 7, query.toString, IndexedSeq.empty))
    assertEquals(problems("onError" -> "dead-letter"), 1)
    assertEquals(problems("onError" -> "dead-letter", "deadLetterTopic" -> "  "), 1)
  }

  test("the names of the options are case-insensitive") {
    assertEquals(policy("ONERROR" -> "drop", "errorsperminute" -> "9"), ErrorPolicy.Drop(9))
  }

  test("values that are no policy and no limit are refused with a code") {
    val bad = Seq(
      "onError" -> "skip",
      "onError" -> "",
      "errorsPerMinute" -> "0",
      "errorsPerMinute" -> "-1",
      "errorsPerMinute" -> "many",
      "errorsPerMinute" -> "99999999999")
    for (option <- bad) {
      assertEquals(problems(option), 1, option)
      val refused = intercept[TailraceException](policy(option))
      assertEquals(refused.getCondition, "TAILRACE_BAD_ERROR_POLICY")
    }
  }

  test("all that is wrong is named at once") {
    assertEquals(problems("onError" -> "dead-letter", "errorsPerMinute" -> "none"), 2)
  }

  private def policy(options: (String, String)*): ErrorPolicy =
    ErrorPolicy.of(CaseInsensitiveMap(options.toMap), query, plan)

  private def problems(options: (String, String)*): Int =
    ErrorPolicy.problemsIn(CaseInsensitiveMap(options.toMap)).length
}
