package org.apache.spark.sql.tailrace.sink.kafka

import java.nio.file.{Files, Path}
import java.nio.file.attribute.PosixFilePermissions

import org.apache.hadoop.conf.Configuration

import org.apache.spark.sql.tailrace.sink.replay.MatchesLeft

import tailrace.TailraceException

class OutputLogSuite extends munit.FunSuite {
  private val Id = "0123456789abcdef0123456789abcdef"
  private val checkpoint = FunFixture[Path](
    setup = _ => Files.createTempDirectory("output-log"),
    teardown = folder => Files.walk(folder).sorted((one, other) => other.compareTo(one)).forEach(Files.delete(_)))

  checkpoint.test("an epoch's end is read by the next run") { folder =>
    val left = MatchesLeft(Map("0" -> Seq(Id, Id)), Map("in" -> Map("1" -> 7L)))
    logIn(folder).commitEpoch(3, EpochEnd(Map("out" -> Map("0" -> 12L)), Some(left)))
    assertEquals(logIn(folder).epochEnd(3), Some(EpochEnd(Map("out" -> Map("0" -> 12L)), Some(left))))
    assertEquals(logIn(folder).epochEnd(4), None)
  }

  checkpoint.test("offsets are read as numbers of the right type") { folder =>
    // Equality does not tell a BigInt from a Long; arithmetic does.
    val left = MatchesLeft(Map.empty, Map("in" -> Map("1" -> 7L)))
    logIn(folder).commitEpoch(3, EpochEnd(Map("out" -> Map("0" -> 12L)), Some(left)))
    logIn(folder).addTopic("out", TopicStart(Map("0" -> 3L)))
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
      s"v1\n{\"ends\":{},\"matchesLeft\":{\"byTask\":{\"2\":[\"$Id\"]},\"until\":{\"in\":{\"0\":9}}}}")
    val left = MatchesLeft(Map("2" -> Seq(Id)), Map("in" -> Map("0" -> 9L)))
    assertEquals(logIn(folder).epochEnd(1), Some(EpochEnd(Map.empty, Some(left))))
  }

  checkpoint.test("a file of another version or another kind is refused with a code") { folder =>
    val reads = Seq[(String, OutputLog => Any)](
      "epochs/0" -> (_.epochEnd(0)),
      "topics/out" -> (_.startOffsets(Map.empty)),
      "run" -> (_.isOwnedBy("run")),
      "transactional-writers" -> (_.transactionalWriters),
      "open-epoch" -> (_.queriesOf(0)))
    for ((name, read) <- reads; content <- Seq("v3\n{\"ends\":{}}", "v1\nnonsense", "")) {
      write(folder, name, content)
      val refused = intercept[TailraceException](read(logIn(folder)))
      assertEquals(refused.getCondition, "TAILRACE_SINK_FILE_DAMAGED", s"$name: $content")
    }
  }

  checkpoint.test("a file that does not match its checksum is refused with a code") { folder =>
    val log = logIn(folder)
    log.claim("run")
    Files.writeString(folder.resolve(OutputLog.Folder).resolve("run"), "v1\n{\"run\":\"sun\"}")
    try assert(!log.isOwnedBy("run"))
    catch { case refused: TailraceException => assertEquals(refused.getCondition, "TAILRACE_SINK_FILE_DAMAGED") }
  }

  checkpoint.test("a topic that is another one than before begins anew") { folder =>
    val log = logIn(folder)
    log.addTopic("out", TopicStart(Map("0" -> 3L), "old"))
    log.replaceTopic("out", "new")
    assertEquals(logIn(folder).topicStarts, Map("out" -> TopicStart(Map.empty, "new")))
    assertEquals(logIn(folder).startOffsets(Map.empty), Map("out" -> Map.empty[String, Long]))
  }

  checkpoint.test("the queries of an epoch are those of its open time") { folder =>
    val log = logIn(folder)
    assertEquals(log.queriesOf(0), None)
    log.setQueries(3, Seq("a", "b"))
    assertEquals(logIn(folder).queriesOf(3), Some(Seq("a", "b")))
    assertEquals(logIn(folder).queriesOf(4), None)
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
    log.addTopic("new", TopicStart(Map("0" -> 3L)))
    log.addTopic("old", TopicStart(Map("0" -> 1L, "1" -> 2L)))
    assertEquals(
      log.startOffsets(Map("old" -> Map("0" -> 10L))),
      Map("new" -> Map("0" -> 3L), "old" -> Map("0" -> 10L, "1" -> 2L)))
  }

  checkpoint.test("the first task that adds a topic wins") { folder =>
    logIn(folder).addTopic("out", TopicStart(Map("0" -> 3L)))
    logIn(folder).addTopic("out", fail("the offsets were asked for"))
    assertEquals(logIn(folder).startOffsets(Map.empty), Map("out" -> Map("0" -> 3L)))
  }

  checkpoint.test("temporary files are no topics") { folder =>
    logIn(folder).addTopic("out", TopicStart(Map("0" -> 3L)))
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

  checkpoint.test("the secret is made once, and only its owner may read it") { folder =>
    val secret = logIn(folder).secret()
    assertEquals(logIn(folder).secret().toHex, secret.toHex)
    assertEquals(secret.toHex.length, 64)
    assertEquals(secret.toString, "SinkSecret")
    val holder = folder.resolve(OutputLog.Folder).resolve("private")
    assertEquals(PosixFilePermissions.toString(Files.getPosixFilePermissions(holder)), "rwx------")
    assertNotEquals(logIn(Files.createDirectory(folder.resolve("other"))).secret().toHex, secret.toHex)
  }

  checkpoint.test("a damaged secret is refused") { folder =>
    for (content <- Seq("", "v1\n{}", "v1\n{\"secret\":\"ab\"}", s"v1\n{\"secret\":\"${"g" * 64}\"}")) {
      write(folder, "private/secret", content)
      val refused = intercept[TailraceException](logIn(folder).secret())
      assertEquals(refused.getCondition, "TAILRACE_SINK_FILE_DAMAGED")
    }
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
