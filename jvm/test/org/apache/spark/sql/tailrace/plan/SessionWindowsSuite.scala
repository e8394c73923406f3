package org.apache.spark.sql.tailrace.plan

import org.apache.spark.sql.catalyst.expressions.{Alias, SessionWindow}
import org.apache.spark.sql.catalyst.plans.logical.Aggregate

class SessionWindowsSuite extends munit.FunSuite {
  import LogicalStreams._

  test("a session window is an aggregation by a column that has the mark") {
    assertEquals(SessionWindows.in(sessions(stream())).length, 1)
    assertEquals(SessionWindows.in(aggregate(stream())).length, 0)
    assertEquals(SessionWindows.in(sessions(table())).length, 0)
  }

  test("for Spark's check the mark is kept, and is false") {
    val admitted = SessionWindows.admitted(sessions(stream())).asInstanceOf[Aggregate]
    val column = admitted.groupingExpressions.last.references.head
    assert(column.metadata.contains(SessionWindow.marker))
    assert(!column.metadata.getBoolean(SessionWindow.marker))
    assert(SessionWindows.isOne(admitted), "Spark plans a session window for it all the same")
  }

  test("a query without a session stays as it is") {
    val query = aggregate(stream())
    assert(SessionWindows.admitted(query) eq query)
  }

  test("a session status needs a session window") {
    val status = Alias(SessionStatus().toAggregateExpression(), "status")()
    val without = aggregate(stream())
    val refused = SessionWindows.statusWithoutSession(without.copy(aggregateExpressions = Seq(status)))
    assertEquals(refused.map(_.getCondition), Some("TAILRACE_STATUS_WITHOUT_SESSION"))
    assertEquals(SessionWindows.statusWithoutSession(without), None)
    val inSession = sessions(stream())
    assertEquals(SessionWindows.statusWithoutSession(inSession.copy(aggregateExpressions = Seq(status))), None)
  }
}
