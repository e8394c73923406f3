package org.apache.spark.sql.tailrace.sink.kafka

import java.nio.file.{Files, Path}

import org.apache.hadoop.conf.Configuration

/** A query is changed without being drained, and the runs end at any time. */
class QueriesOfEpochSuite extends munit.FunSuite {
  private val checkpoint = FunFixture[Path](
    setup = _ => Files.createTempDirectory("queries"),
    teardown = folder => Files.walk(folder).sorted((one, other) => other.compareTo(one)).forEach(Files.delete(_)))

  checkpoint.test("the first run of a query finds no other") { folder =>
    assert(start(folder, epoch = 0, "a", hasRows = false).isSame)
    assert(start(folder, epoch = 0, "a", hasRows = true).isSame)
  }

  checkpoint.test("another query is noticed, and remembered until its rows have been replayed") { folder =>
    start(folder, epoch = 0, "a", hasRows = false)
    assert(!start(folder, epoch = 0, "b", hasRows = true).isSame)
    // The run with b failed: rows of both are there.
    val third = start(folder, epoch = 0, "b", hasRows = true)
    assert(!third.isSame)
    assertEquals(third.after(everythingIsReplayed = false), Seq("a", "b"))
    assertEquals(third.after(everythingIsReplayed = true), Seq("b"))
    assert(third.isSame)
  }

  checkpoint.test("if the other query wrote nothing, nothing has to be remembered") { folder =>
    start(folder, epoch = 0, "a", hasRows = false)
    assert(start(folder, epoch = 0, "b", hasRows = false).isSame)
    assert(start(folder, epoch = 0, "b", hasRows = true).isSame)
  }

  checkpoint.test("a run that went on into the open epoch is known by the commit before") { folder =>
    val first = start(folder, epoch = 0, "a", hasRows = false)
    val end = EpochEnd(Map.empty, queries = first.after(everythingIsReplayed = true))
    assert(!start(folder, epoch = 1, "b", hasRows = true, Some(end)).isSame)
    // By now the open epoch may have rows of b, too.
    assert(!start(folder, epoch = 1, "a", hasRows = true, Some(end)).isSame)
  }

  checkpoint.test("a checkpoint of an older version says nothing, and the query is taken for the same") { folder =>
    assert(start(folder, epoch = 7, "a", hasRows = true, Some(EpochEnd(Map.empty))).isSame)
  }

  private def start(
      folder: Path,
      epoch: Long,
      query: String,
      hasRows: Boolean,
      lastEpoch: Option[EpochEnd] = None): QueriesOfEpoch = {
    val queries = new QueriesOfEpoch(new OutputLog(folder.toUri.toString, new Configuration), epoch, lastEpoch, query)
    queries.start(hasRows)
    queries
  }
}
