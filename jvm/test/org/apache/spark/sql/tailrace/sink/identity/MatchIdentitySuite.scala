package org.apache.spark.sql.tailrace.sink.identity

import org.apache.spark.sql.catalyst.expressions.{Alias, CurrentTimestamp, Expression, Literal, Rand, Upper}
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical.{Deduplicate, LogicalPlan, Project, Repartition}
import org.apache.spark.sql.tailrace.plan.LogicalStreams._

class MatchIdentitySuite extends munit.FunSuite {
  private val NoIdentity = "TAILRACE_NO_ROW_IDENTITY"
  private val NotDeterministic = "TAILRACE_NOT_DETERMINISTIC"

  test("a query without a join of two streams has no obstacle here") {
    Seq(stream(), aggregate(stream()), withColumn(stream(), Rand(Literal(1L))), join(stream(), table(), LeftOuter))
      .foreach(query => assertEquals(codes(query), Nil))
  }

  test("inner and left semi joins can be recognized") {
    assertEquals(codes(join(stream(), stream(), Inner)), Nil)
    assertEquals(codes(join(stream(), stream(), LeftSemi)), Nil)
  }

  test("a row without a match could find one in a replay") {
    Seq(LeftOuter, RightOuter, FullOuter).foreach { kind =>
      assertEquals(codes(join(stream(), stream(), kind)), Seq(NoIdentity), kind)
    }
  }

  test("further state depends on the order of its rows") {
    val joined = join(stream(), stream(), Inner)
    assertEquals(codes(aggregate(joined)), Seq(NoIdentity))
    assertEquals(codes(Deduplicate(Seq(keyOf(joined)), joined)), Seq(NoIdentity))
    assertEquals(codes(join(joined, stream(), Inner)), Seq(NoIdentity))
    assertEquals(codes(join(joined, aggregate(table()), Inner)), Nil, "a table's aggregation keeps no state")
  }

  test("a shuffle after the join can send a match to another task") {
    val joined = join(stream(), stream(), Inner)
    assertEquals(codes(Repartition(4, shuffle = true, joined)), Seq(NoIdentity))
    assertEquals(codes(join(Repartition(4, shuffle = true, stream()), stream(), Inner)), Nil)
  }

  test("content that changes from replay to replay does not identify a match") {
    val joined = join(stream(), stream(), Inner)
    assertEquals(codes(withColumn(joined, Rand(Literal(1L)))), Seq(NotDeterministic))
    assertEquals(codes(withColumn(joined, CurrentTimestamp())), Seq(NotDeterministic))
    assertEquals(codes(withColumn(joined, Upper(keyOf(joined)))), Nil)
    assertEquals(codes(join(withColumn(stream(), CurrentTimestamp()), stream(), Inner)), Seq(NotDeterministic))
  }

  test("all obstacles are in one error") {
    val query = aggregate(withColumn(join(stream(), stream(), LeftOuter), Rand(Literal(1L))))
    assertEquals(codes(query), Seq(NoIdentity, NoIdentity, NotDeterministic))
    val refused = MatchIdentity.refusal(query).get
    assertEquals(refused.getCondition, NoIdentity)
    assert(refused.getMessage.contains("rand()"), refused.getMessage)
    assertEquals(MatchIdentity.refusal(join(stream(), stream(), Inner)), None)
  }

  private def withColumn(child: LogicalPlan, value: Expression): LogicalPlan =
    Project(child.output :+ Alias(value, "added")(), child)

  private def codes(query: LogicalPlan): Seq[String] = MatchIdentity.obstacles(query).map(_.code)
}
