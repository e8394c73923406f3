package org.apache.spark.sql.tailrace.sink.replay

/** A query is changed without being drained, and the runs end at any time. */
class QueriesOfEpochSuite extends munit.FunSuite {
  test("the first run of a query finds no other") {
    val log = new InMemoryLog
    assert(start(log, epoch = 0, "a", hasRows = false).isSame)
    assert(start(log, epoch = 0, "a", hasRows = true).isSame)
  }

  test("another query is noticed, and remembered until its rows have been replayed") {
    val log = new InMemoryLog
    start(log, epoch = 0, "a", hasRows = false)
    assert(!start(log, epoch = 0, "b", hasRows = true).isSame)
    // The run with b failed: rows of both are there.
    val third = start(log, epoch = 0, "b", hasRows = true)
    assert(!third.isSame)
    assertEquals(third.after(everythingIsReplayed = false), Seq("a", "b"))
    assertEquals(third.after(everythingIsReplayed = true), Seq("b"))
    assert(third.isSame)
  }

  test("if the other query wrote nothing, nothing has to be remembered") {
    val log = new InMemoryLog
    start(log, epoch = 0, "a", hasRows = false)
    assert(start(log, epoch = 0, "b", hasRows = false).isSame)
    assert(start(log, epoch = 0, "b", hasRows = true).isSame)
  }

  test("a run that went on into the open epoch is known by the commit before") {
    val log = new InMemoryLog
    val first = start(log, epoch = 0, "a", hasRows = false)
    val end = first.after(everythingIsReplayed = true)
    assert(!start(log, epoch = 1, "b", hasRows = true, Some(end)).isSame)
    // By now the open epoch may have rows of b, too.
    assert(!start(log, epoch = 1, "a", hasRows = true, Some(end)).isSame)
  }

  test("a checkpoint of an older version says nothing, and the query is taken for the same") {
    val log = new InMemoryLog
    assert(start(log, epoch = 7, "a", hasRows = true, Some(Nil)).isSame)
  }

  private def start(
      log: QueryLog,
      epoch: Long,
      query: String,
      hasRows: Boolean,
      logged: Option[Seq[String]] = None): QueriesOfEpoch = {
    val queries = new QueriesOfEpoch(log, epoch, logged, query)
    queries.start(hasRows)
    queries
  }

  private final class InMemoryLog extends QueryLog {
    private var noted = Option.empty[(Long, Seq[String])]
    override def queriesOf(epoch: Long): Option[Seq[String]] = noted.filter(_._1 == epoch).map(_._2)
    override def setQueries(epoch: Long, queries: Seq[String]): Unit = noted = Some(epoch -> queries)
  }
}
