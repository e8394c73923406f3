package org.apache.spark.sql.tailrace.sink.kafka

import java.nio.file.{Files, Path}

import org.apache.hadoop.conf.Configuration

class OutputLogSuite extends munit.FunSuite {
  private val checkpoint = FunFixture[Path](
    setup = _ => Files.createTempDirectory("output-log"),
    teardown = folder => Files.walk(folder).sorted((one, other) => other.compareTo(one)).forEach(Files.delete(_)))

  checkpoint.test("an epoch's end is read by the next run") { folder =>
    val left = MatchesLeft(Map("0" -> Seq("ab", "ab")), Map("in" -> Map("1" -> 7L)))
    logIn(folder).commitEpoch(3, EpochEnd(Map("out" -> Map("0" -> 12L)), Some(left)))
    assertEquals(logIn(folder).epochEnd(3), Some(EpochEnd(Map("out" -> Map("0" -> 12L)), Some(left))))
    assertEquals(logIn(folder).epochEnd(4), None)
  }

  checkpoint.test("offsets are read as numbers of the right type") { folder =>
    // Equality does not tell a BigInt from a Long; arithmetic does.
    val left = MatchesLeft(Map.empty, Map("in" -> Map("1" -> 7L)))
    logIn(folder).commitEpoch(3, EpochEnd(Map("out" -> Map("0" -> 12L)), Some(left)))
    logIn(folder).addTopic("out", Map("0" -> 3L))
    val end = logIn(folder).epochEnd(3).get
    val offsets: Seq[Long] = Seq(end.ends("out")("0"), end.matchesLeft.get.until("in")("1"))
    assertEquals(offsets.sum, 19L)
    assertEquals(logIn(folder).startOffsets(end.ends)("out")("0") + 1, 13L)
  }

  checkpoint.test("an epoch that is committed again replaces what was logged") { folder =>
    val log = logIn(folder)
    log.commitEpoch(0, EpochEnd(Map("out" -> Map("0" -> 1L))))
    log.commitEpoch(0, EpochEnd(Map("out" -> Map("0" -> 2L))))
    assertEquals(log.epochEnd(0).map(_.ends), Some(Map("out" -> Map("0" -> 2L))))
  }

  checkpoint.test("files that an older version has written are read") { folder =>
    write(folder, "epochs/0", "v1\n{\"ends\":{\"out\":{\"0\":5}}}")
    assertEquals(logIn(folder).epochEnd(0), Some(EpochEnd(Map("out" -> Map("0" -> 5L)))))
    write(
      folder,
      "epochs/1",
      "v1\n{\"ends\":{},\"matchesLeft\":{\"byTask\":{\"2\":[\"00\"]},\"until\":{\"in\":{\"0\":9}}}}")
    val left = MatchesLeft(Map("2" -> Seq("00")), Map("in" -> Map("0" -> 9L)))
    assertEquals(logIn(folder).epochEnd(1), Some(EpochEnd(Map.empty, Some(left))))
  }

  checkpoint.test("a file of another version or another kind is refused") { folder =>
    for (content <- Seq("v2\n{\"ends\":{}}", "v1\nnonsense", "")) {
      write(folder, "epochs/0", content)
      intercept[IllegalStateException](logIn(folder).epochEnd(0))
    }
  }

  checkpoint.test("old epochs are purged") { folder =>
    val log = logIn(folder)
    log.purgeBefore(1)
    (0 to 3).foreach(log.commitEpoch(_, EpochEnd(Map.empty)))
    log.purgeBefore(2)
    assertEquals((0 to 3).map(epoch => log.epochEnd(epoch).isDefined), Seq(false, false, true, true))
  }

  checkpoint.test("a read-back starts at the epoch's end, or where a topic ended before the first record") { folder =>
    val log = logIn(folder)
    log.addTopic("new", Map("0" -> 3L))
    log.addTopic("old", Map("0" -> 1L, "1" -> 2L))
    assertEquals(
      log.startOffsets(Map("old" -> Map("0" -> 10L))),
      Map("new" -> Map("0" -> 3L), "old" -> Map("0" -> 10L, "1" -> 2L)))
  }

  checkpoint.test("the first task that adds a topic wins") { folder =>
    logIn(folder).addTopic("out", Map("0" -> 3L))
    logIn(folder).addTopic("out", fail("the offsets were asked for"))
    assertEquals(logIn(folder).startOffsets(Map.empty), Map("out" -> Map("0" -> 3L)))
  }

  checkpoint.test("temporary files are no topics") { folder =>
    logIn(folder).addTopic("out", Map("0" -> 3L))
    write(folder, "topics/.out.0.tmp", "v1\n{}")
    assertEquals(logIn(folder).startOffsets(Map.empty).keySet, Set("out"))
  }

  checkpoint.test("the last run that claims the output owns it") { folder =>
    val log = logIn(folder)
    assert(log.isOwnedBy("anyone"))
    log.claim("first")
    log.claim("second")
    assert(!log.isOwnedBy("first"))
    assert(log.isOwnedBy("second"))
  }

  checkpoint.test("the number of transactional writers only grows") { folder =>
    val log = logIn(folder)
    assertEquals(log.transactionalWriters, 0)
    Seq(2, 5, 3).foreach(log.addTransactionalWriters)
    assertEquals(logIn(folder).transactionalWriters, 5)
  }

  private def logIn(folder: Path): OutputLog = new OutputLog(folder.toUri.toString, new Configuration)

  private def write(folder: Path, name: String, content: String): Unit = {
    val file = folder.resolve(OutputLog.Folder).resolve(name)
    Files.createDirectories(file.getParent)
    // Hadoop's checksums of an older content would not fit.
    Files.deleteIfExists(file.resolveSibling(s".${file.getFileName}.crc"))
    Files.writeString(file, content)
  }
}
