package org.apache.spark.sql.tailrace.plan

import tailrace.support.{Operators, Sinks}

class RefusalSuite extends munit.FunSuite {
  test("what is supported is not refused") {
    assertEquals(Refusal.of(Nil, Some(Sinks.PythonForeach)), None)
    assertEquals(Refusal.of(Nil, None), None)
  }

  test("all reasons are in one error, each once") {
    val refused = Refusal.of(Seq(Operators.Sort, Operators.Sort), Some(Sinks.Memory)).get
    assertEquals(refused.getCondition, "TAILRACE_UNSUPPORTED_OPERATOR")
    val lines = refused.getMessage.linesIterator.toSeq
    assertEquals(lines.count(_.contains("cannot run in Real-Time Mode")), 1)
    assertEquals(lines.count(_.contains("the sink 'memory' cannot be used")), 1)
  }

  test("a sink only has its own code") {
    assertEquals(Refusal.of(Nil, Some(Sinks.Files)).map(_.getCondition), Some("TAILRACE_UNSUPPORTED_SINK"))
  }
}
