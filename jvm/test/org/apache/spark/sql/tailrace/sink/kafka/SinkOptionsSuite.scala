package org.apache.spark.sql.tailrace.sink.kafka

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.util.CaseInsensitiveStringMap

import tailrace.TailraceException

class SinkOptionsSuite extends munit.FunSuite {
  private val servers = "kafka.bootstrap.servers" -> "host:9092"

  test("options for Kafka lose their prefix and keep their case") {
    val options = of(servers, "Kafka.client.Id" -> "x", "topic" -> " out ")
    assertEquals(options.kafka, Map("bootstrap.servers" -> "host:9092", "client.Id" -> "x"))
    assertEquals(options.topic, Some("out"))
    assertEquals(options.transactionMs, None)
    assert(!options.isTransactional)
  }

  test("the topic may be a column") {
    assertEquals(of(servers).topic, None)
    assertEquals(of(servers, "topic" -> "  ").topic, None)
  }

  test("transactions are as long as the user says") {
    assertEquals(of(servers, "transactionInterval" -> "20ms").transactionMs, Some(20L))
    assertEquals(of(servers, "transactioninterval" -> " 2 S ").transactionMs, Some(2000L))
  }

  for (wrong <- Seq(
      Seq(),
      Seq(servers, "transactionInterval" -> "soon"),
      Seq(servers, "transactionInterval" -> "0ms"),
      Seq(servers, "transactionInterval" -> "-1s"),
      Seq(servers, "kafka.acks" -> "1"),
      Seq(servers, "kafka.enable.idempotence" -> " FALSE"),
      Seq(servers, "kafka.transactional.id" -> "x"),
      Seq(servers, "kafka.key.serializer" -> "x"),
      Seq(servers, "kafka.value.serializer" -> "x"))) {
    test(s"refused: ${wrong.mkString(", ")}") {
      assertEquals(intercept[TailraceException](of(wrong: _*)).getCondition, "TAILRACE_BAD_SINK_OPTION")
    }
  }

  test("values that change nothing are accepted") {
    of(servers, "kafka.acks" -> "all", "kafka.enable.idempotence" -> "true")
    of(servers, "kafka.acks" -> "-1")
  }

  test("passwords are not printed") {
    assert(!of(servers, "kafka.ssl.key.password" -> "secret").toString.contains("secret"))
  }

  private def of(options: (String, String)*): SinkOptions =
    SinkOptions.of(new CaseInsensitiveStringMap(options.toMap.asJava))
}
