package org.apache.spark.sql.tailrace.sink.kafka

import java.nio.charset.StandardCharsets.UTF_8
import java.security.{MessageDigest, SecureRandom}
import java.util.HexFormat
import javax.crypto.Mac
import javax.crypto.spec.SecretKeySpec

import scala.util.Try

/** The secret of a checkpoint that its query's records are authenticated with. */
final class SinkSecret private (private[kafka] val bytes: Array[Byte]) extends Serializable {

  /** To be stored. Anyone who knows it can forge records of the query. */
  private[kafka] def toHex: String = HexFormat.of().formatHex(bytes)

  // An object that holds it may be logged or shown.
  override def toString: String = "SinkSecret"
}

object SinkSecret {
  private val Bytes = 32

  def random(): SinkSecret = {
    val bytes = new Array[Byte](Bytes)
    new SecureRandom().nextBytes(bytes)
    new SinkSecret(bytes)
  }

  /** None if the text is not a secret. */
  private[kafka] def parse(text: String): Option[SinkSecret] =
    Try(HexFormat.of().parseHex(text)).toOption.filter(_.length == Bytes).map(new SinkSecret(_))
}

/**
 * Computes the message authentication codes of output records: an HMAC-SHA256, cut to 16 bytes, over the topic, the
 * partition that the row names (the one that Kafka's partitioner chooses is not known before the record is sent), the
 * key, the value, and the headers that stand before the code itself. The row's identity is among these headers.
 *
 * For one thread at a time.
 */
final class RecordMac(secret: SinkSecret) {
  import RecordMac._

  private val mac = Mac.getInstance(Algorithm)
  mac.init(new SecretKeySpec(secret.bytes, Algorithm))
  private val parts = new RecordParts(mac.update)

  def of(record: OutputRecord): String = {
    parts.put(record)
    HexFormat.of().formatHex(mac.doFinal(), 0, Bytes)
  }

  def isOf(code: String, record: OutputRecord): Boolean =
    code.length == 2 * Bytes && MessageDigest.isEqual(code.getBytes(UTF_8), of(record).getBytes(UTF_8))
}

private object RecordMac {
  private val Algorithm = "HmacSHA256"
  private val Bytes = 16
}
