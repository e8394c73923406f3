package org.apache.spark.sql.tailrace.sink.redis

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.catalyst.expressions.GenericInternalRow
import org.apache.spark.sql.tailrace.internals.{RedisError, RedisUnreachable}
import org.apache.spark.sql.tailrace.sink.store.WriterKey
import org.apache.spark.sql.types._
import org.apache.spark.sql.util.CaseInsensitiveStringMap
import org.apache.spark.unsafe.types.UTF8String

import tailrace.TailraceException

class RedisRowsSuite extends munit.FunSuite {
  private def options(more: (String, String)*) = RedisOptions.of(new CaseInsensitiveStringMap(
    (Map("url" -> "redis://me@host", "structure" -> "hash", "key" -> "u:{id}", "password" -> "secret") ++ more).asJava))

  private val schema = StructType(Seq(StructField("id", LongType), StructField("name", StringType)))

  private def read(options: RedisOptions, id: Any, name: String) =
    new RedisRowReader(options, schema, "UTC").read(new GenericInternalRow(Array[Any](id, UTF8String.fromString(name))))

  private def texts(row: RedisRow) = (new String(row.key), row.arguments.toSeq.map(new String(_)))

  test("a key is made of texts and columns, and doubled braces are braces") {
    val template = KeyTemplate.parse("{{a}}:{ id }:{name}")
    assertEquals(template.parts, Seq(Left("{"), Left("a"), Left("}"), Left(":"), Right("id"), Left(":"), Right("name")))
    assertEquals(template.example, "{a}:0:0")
    Seq("u:{id", "u:id}", "{}", "{a{b}}").foreach(text => intercept[TailraceException](KeyTemplate.parse(text)))
  }

  test("rows become the arguments of their command") {
    assertEquals(texts(read(options(), 7L, "x")), ("u:7", Seq("2", "name", "x")))
    assertEquals(texts(read(options(), 7L, null)), ("u:7", Seq("0", "name")))
    assertEquals(texts(read(options("structure" -> "string"), 7L, "x")), ("u:7", Seq("{\"id\":7,\"name\":\"x\"}")))
    val board = options("structure" -> "sorted-set", "key" -> "b", "member" -> "name", "score" -> "id")
    assertEquals(texts(read(board, 7L, "x")), ("b", Seq("7", "x")))
    assert(read(options(), null, "x").problem.nonEmpty)
    assert(read(board, 7L, null).problem.nonEmpty)
  }

  test("the same row has the same hashes, and another member is another key") {
    val board = options("structure" -> "sorted-set", "key" -> "b", "member" -> "name", "score" -> "id")
    val (one, again, other) = (read(board, 1L, "x"), read(board, 1L, "x"), read(board, 1L, "y"))
    assertEquals((one.keyHash, one.contentHash), (again.keyHash, again.contentHash))
    assertNotEquals(one.keyHash, other.keyHash)
    val (first, second) = (read(options(), 1L, "x"), read(options(), 1L, "y"))
    assertEquals(first.keyHash, second.keyHash)
    assertNotEquals(first.contentHash, second.contentHash)
  }

  test("the journal does not name rows that were rejected") {
    val entry = JournalEntry.encode(WriterKey("q", 3, 0, 5, 0), "print", Nil)
    val noted = "2 WRONGTYPE ü: not 1\n10 ERR no float"
    val read = JournalEntry.read(s"${noted.getBytes.length}:$noted".getBytes ++ entry)
    assertEquals((read.task, read.run, read.fingerprint, read.rejected), (5, 3L, "print", Set(2, 10)))
    assertEquals(JournalEntry.read("0:".getBytes ++ entry).rejected, Set.empty[Int])
  }

  test("errors of the server and of a row are told apart") {
    val server = options().server
    Seq("OOM command not allowed", "READONLY You can't", "LOADING", "ERR max number of clients reached").foreach(text =>
      assert(server.isTransient(new RedisError(text)), text))
    assert(server.isTransient(new RedisUnreachable("gone", null)))
    Seq("WRONGPASS x", "NOPERM x", "ERR x").foreach(text => assert(!server.isTransient(new RedisError(text)), text))
    Seq("WRONGTYPE Operation against", "ERR value is not a valid float").foreach(text =>
      assert(RedisBatchWriter.isOfRow(new RedisError(text)), text))
    Seq("ERR ACL failure in script", "NOPERM x", "ERR unknown").foreach(text =>
      assert(!RedisBatchWriter.isOfRow(new RedisError(text)), text))
    assert(!server.keepsConnection(new RedisError("READONLY x")))
  }

  test("a password is in no text, and a url is read as a whole") {
    val read = options("url" -> "rediss://me@host:7000/3", "ttl" -> "30 minutes")
    assertEquals(read.server.address.password, Some("secret"))
    assert(!s"$read ${read.server} ${read.server.name}".contains("secret"))
    assertEquals(read.server.url, "rediss://host:7000/3")
    assertEquals(read.server.address.user, Some("me"))
    assertEquals(read.ttlMs, Some(1800000L))
    val inUrl = intercept[TailraceException](options("url" -> "redis://me:secret@host"))
    assertEquals(inUrl.getCondition, "TAILRACE_BAD_SINK_OPTION")
    assert(!inUrl.getMessage.contains("secret"))
  }
}
