package org.apache.spark.sql.tailrace.sink.dedup

import java.lang.Long.{parseUnsignedLong, toHexString}

import scala.util.Try

/** Identifies an output record by everything that the query put into it. Equal records have equal ids. */
final case class ContentId(high: Long, low: Long) {
  override def toString: String = ContentId.hex(high) + ContentId.hex(low)
}

object ContentId {
  private val HexDigits = 16

  /** None if the text is not a content id. */
  def parse(text: String): Option[ContentId] =
    Option.when(text.length == 2 * HexDigits)(text.splitAt(HexDigits)).flatMap {
      case (high, low) => Try(ContentId(parseUnsignedLong(high, 16), parseUnsignedLong(low, 16))).toOption
    }

  private def hex(half: Long): String = {
    val digits = toHexString(half)
    "0" * (HexDigits - digits.length) + digits
  }
}
