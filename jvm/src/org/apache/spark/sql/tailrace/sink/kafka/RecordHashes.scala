package org.apache.spark.sql.tailrace.sink.kafka

import java.nio.ByteBuffer
import java.nio.charset.StandardCharsets.UTF_8
import java.security.MessageDigest

import org.apache.spark.sql.catalyst.expressions.XXH64
import org.apache.spark.sql.tailrace.sink.dedup.ContentId
import org.apache.spark.unsafe.Platform

/** Fast hashes that recognize a row among the few that share its origin. */
object RecordHashes {
  private val Seed = 42L

  /** Identifies a record's key in its topic. */
  def ofKey(topic: String, key: Array[Byte]): Long = hash(key, topic.hashCode + Seed)

  /** Identifies a record's key and value in its topic. */
  def ofContent(keyHash: Long, value: Array[Byte]): Long = hash(value, keyHash)

  private def hash(bytes: Array[Byte], seed: Long): Long =
    if (bytes == null) seed * 31 + 1 else XXH64.hashUnsafeBytes(bytes, Platform.BYTE_ARRAY_OFFSET, bytes.length, seed)
}

/**
 * Feeds a record to a hash function. Each part is preceded by its length, so two records cannot collide by shifting
 * bytes from one part to the next.
 */
private[kafka] final class RecordParts(update: Array[Byte] => Unit) {
  import RecordParts._

  private val number = ByteBuffer.allocate(Integer.BYTES)

  def put(record: OutputRecord): Unit = {
    put(record.topic)
    // A partition that Kafka's partitioner chooses is not part of the content.
    put(if (record.partition == null) Absent else record.partition.intValue)
    put(record.key)
    put(record.value)
    put(record.headers.length)
    record.headers.foreach { header =>
      put(header.key())
      put(header.value())
    }
  }

  private def put(text: String): Unit = put(text.getBytes(UTF_8))

  private def put(bytes: Array[Byte]): Unit =
    if (bytes == null) {
      put(Absent)
    } else {
      put(bytes.length)
      update(bytes)
    }

  private def put(value: Int): Unit = {
    number.putInt(0, value)
    update(number.array())
  }
}

private object RecordParts {
  private val Absent = -1
}

/**
 * Computes the content ids of a task's records. The digest is cryptographic because two matches of a join that differ
 * must never be taken for each other.
 */
final class ContentDigest {
  private val digest = MessageDigest.getInstance("SHA-256")
  private val parts = new RecordParts(digest.update)

  def of(record: OutputRecord): ContentId = {
    parts.put(record)
    val result = ByteBuffer.wrap(digest.digest())
    ContentId(result.getLong(), result.getLong())
  }
}
