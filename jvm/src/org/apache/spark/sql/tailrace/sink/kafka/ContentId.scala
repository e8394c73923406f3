package org.apache.spark.sql.tailrace.sink.kafka

import java.lang.Long.{parseUnsignedLong, toHexString}
import java.nio.ByteBuffer
import java.nio.charset.StandardCharsets.UTF_8
import java.security.MessageDigest

import scala.util.Try

/** Stands for all that the query has put into an output record: the same for records that are alike, and for no others. */
final case class ContentId(high: Long, low: Long) {
  override def toString: String = ContentId.hex(high) + ContentId.hex(low)
}

object ContentId {
  private val HexDigits = 16

  /** None if it is something else. */
  def parse(text: String): Option[ContentId] =
    Option.when(text.length == 2 * HexDigits)(text.splitAt(HexDigits)).flatMap {
      case (high, low) => Try(ContentId(parseUnsignedLong(high, 16), parseUnsignedLong(low, 16))).toOption
    }

  private def hex(half: Long): String = {
    val digits = toHexString(half)
    "0" * (HexDigits - digits.length) + digits
  }
}

/** In a task: takes the ids of its records. Cryptographic, because records that others have sent decide over what is dropped. */
final class ContentIds {
  private val digest = MessageDigest.getInstance("SHA-256")
  private val number = ByteBuffer.allocate(Integer.BYTES)

  def of(record: OutputRecord): ContentId = {
    put(record.topic)
    // Which one Kafka chooses is not the query's doing.
    put(if (record.partition == null) ContentIds.None else record.partition.intValue)
    put(record.key)
    put(record.value)
    put(record.headers.length)
    record.headers.foreach { header =>
      put(header.key())
      put(header.value())
    }
    val result = ByteBuffer.wrap(digest.digest())
    ContentId(result.getLong(), result.getLong())
  }

  private def put(text: String): Unit = put(text.getBytes(UTF_8))

  // With its length before it, so that what is said of one part cannot be taken for another.
  private def put(bytes: Array[Byte]): Unit =
    if (bytes == null) {
      put(ContentIds.None)
    } else {
      put(bytes.length)
      digest.update(bytes)
    }

  private def put(value: Int): Unit = {
    number.putInt(0, value)
    digest.update(number.array())
  }
}

private object ContentIds {
  private val None = -1
}
