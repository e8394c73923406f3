package org.apache.spark.sql.tailrace.operators.python

import scala.collection.mutable

import org.apache.spark.sql.catalyst.InternalRow

class SentRowsSuite extends munit.FunSuite {

  private def batch(ids: Int*): Batch =
    new Batch(ids.map(id => new PendingRow(InternalRow(id), null)).toArray, 0, expectsRows = false)

  test("rows come in the order of sending, and each batch is reported after its last row") {
    val taken = mutable.ArrayBuffer.empty[Batch]
    val rows = new SentRows(taken += _)
    val (first, second) = (batch(1, 2), batch(3))
    rows.add(first)
    rows.add(second)
    assertEquals(rows.next().row.getInt(0), 1)
    assertEquals(taken.toSeq, Seq())
    assertEquals(rows.next().row.getInt(0), 2)
    assertEquals(taken.toSeq, Seq(first))
    assertEquals(rows.next().row.getInt(0), 3)
    assertEquals(taken.toSeq, Seq(first, second))
  }

  test("more results than rows are an error") {
    val rows = new SentRows(_ => ())
    rows.add(batch(1))
    rows.next()
    intercept[IllegalStateException](rows.next())
  }
}
