package org.apache.spark.sql.tailrace.plan

import org.apache.spark.sql.catalyst.plans.{Inner, LeftOuter}
import org.apache.spark.sql.catalyst.plans.logical.Distinct
import org.apache.spark.sql.streaming.OutputMode

class OutputModesSuite extends munit.FunSuite {
  import LogicalStreams._

  test("append is for joins of streams and session windows") {
    assert(OutputModes.mayAppend(join(stream(), stream(), LeftOuter)))
    assert(OutputModes.mayAppend(sessions(stream())))
    assert(!OutputModes.mayAppend(stream()))
    assert(!OutputModes.mayAppend(aggregate(stream())))
    assert(!OutputModes.mayAppend(join(stream(), table(), Inner)))
  }

  test("what changes rows that were emitted has no append") {
    val joined = join(stream(), stream(), Inner)
    assert(!OutputModes.mayAppend(aggregate(joined)))
    assert(!OutputModes.mayAppend(Distinct(joined)))
    assert(OutputModes.mayAppend(sessions(joined)))
  }

  test("an aggregation of a table changes nothing in the stream") {
    assert(OutputModes.mayAppend(join(join(stream(), stream(), Inner), aggregate(table()), Inner)))
  }

  test("a join is planned with append, all else with update") {
    assertEquals(OutputModes.plannable(join(stream(), stream(), LeftOuter)), OutputMode.Append())
    assertEquals(OutputModes.plannable(sessions(stream())), OutputMode.Update())
    assertEquals(OutputModes.plannable(stream()), OutputMode.Update())
  }
}
