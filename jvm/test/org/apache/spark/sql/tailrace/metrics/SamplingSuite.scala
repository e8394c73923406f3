package org.apache.spark.sql.tailrace.metrics

class SamplingSuite extends munit.FunSuite {
  test("every row is timed as long as there are few") {
    val sampling = new Sampling
    for (_ <- 1 to 3) {
      Sampling.beginTick()
      assertEquals(Seq.fill(47)(sampling.weightOfNext()), Seq.fill(47)(1))
    }
  }

  test("under load ever fewer rows are timed, and they stand for the others") {
    Sampling.beginTick()
    val sampling = new Sampling
    val rows = 1000000
    val weights = Iterator.fill(rows)(sampling.weightOfNext()).filter(_ > 0).toSeq
    assert(weights.length < rows / 100, s"${weights.length} rows were timed")
    assert(weights.sum > rows - 2 * 512 && weights.sum <= rows, s"they stand for ${weights.sum}")
    assert(weights.max <= 2 * 512)
  }

  test("the first row of a tick stands only for itself") {
    Sampling.beginTick()
    val sampling = new Sampling
    while (sampling.weightOfNext() > 0) {}
    Sampling.beginTick()
    assertEquals(sampling.weightOfNext(), 1)
  }
}
