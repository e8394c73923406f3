package org.apache.spark.sql.tailrace.internals.kafka

import java.util.concurrent.ExecutionException

import org.apache.kafka.clients.producer.{Callback, ProducerRecord}

import org.apache.spark.sql.tailrace.internals.kafka.Producers.Producer

class ProducersSuite extends munit.FunSuite {
  // Nobody listens there, and nobody waits for it.
  private val options = SourceClientOptions(Map("bootstrap.servers" -> "127.0.0.1:1", "max.block.ms" -> "1"))

  test("a producer that one task gives up stays open for the others, and is given to no new one") {
    val first, second = Producers.share(options)
    assert(first eq second)
    Producers.release(first, mayBeKept = false)
    assert(isOpen(second))
    val third = Producers.share(options)
    assert(third ne second)
    Producers.release(second)
    assert(!isOpen(second))
    assert(isOpen(third))
    Producers.release(third, mayBeKept = false)
    assert(!isOpen(third))
  }

  test("a producer that everyone gives back is kept") {
    val first = Producers.share(options)
    Producers.release(first)
    val second = Producers.share(options)
    assert(first eq second)
    assert(isOpen(second))
    Producers.release(second, mayBeKept = false)
    assert(!isOpen(second))
  }

  private def isOpen(producer: Producer): Boolean =
    try {
      producer.send(new ProducerRecord[Array[Byte], Array[Byte]]("none", Array.emptyByteArray), null: Callback).get()
      true
    } catch {
      case _: ExecutionException => true
      case closed: IllegalStateException if closed.getMessage.contains("closed") => false
    }
}
