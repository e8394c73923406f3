package org.apache.spark.sql.tailrace.plan

import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical.{Distinct, Union}

import tailrace.support.Operators

class StreamJoinsSuite extends munit.FunSuite {
  import LogicalStreams._

  test("a join of two streams is one, with a table it is not") {
    assertEquals(StreamJoins.in(join(stream(), stream(), Inner)).length, 1)
    assertEquals(StreamJoins.in(join(stream(), table(), Inner)).length, 0)
    assertEquals(StreamJoins.in(join(table(), table(), Inner)).length, 0)
  }

  test("joins are found anywhere in the query") {
    val inner = join(stream(), stream(), Inner)
    assertEquals(StreamJoins.in(Distinct(join(inner, stream(), LeftOuter))).length, 2)
    assertEquals(StreamJoins.outer(Distinct(join(inner, stream(), LeftOuter))).map(_.joinType), Seq(LeftOuter))
  }

  test("the kinds that emit rows without a match") {
    val kinds = Seq(Inner, LeftOuter, RightOuter, FullOuter, LeftSemi)
    val outer = kinds.filter(kind => StreamJoins.outer(join(stream(), stream(), kind)).nonEmpty)
    assertEquals(outer, Seq(LeftOuter, RightOuter, FullOuter))
  }

  test("kinds that Spark has not, and joins without equal keys, are refused") {
    assertEquals(StreamJoins.refusal(join(stream(), stream(), Inner)), None)
    assertEquals(StreamJoins.refusal(join(stream(), stream(), LeftAnti)), Some(Operators.StreamJoinOfAnotherKind))
    assertEquals(StreamJoins.refusal(unequal(stream(), stream(), Inner)), Some(Operators.StreamJoinWithoutEqualKeys))
  }

  test("state below a union that Spark's own check passes over") {
    val joined = join(stream(), stream(), LeftSemi)
    assertEquals(StreamJoins.stateSparkDoesNotKnow(Union(joined, stream())), Seq(joined))
    assertEquals(StreamJoins.stateSparkDoesNotKnow(Union(stream(), stream())), Nil)
  }
}
