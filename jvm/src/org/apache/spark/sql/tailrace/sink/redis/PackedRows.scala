package org.apache.spark.sql.tailrace.sink.redis

import java.io.{ByteArrayOutputStream, DataOutputStream}

/**
 * The rows of a batch as one argument, in MessagePack, which Redis' scripts can read: a single array with, for each
 * row, its key, the number of its arguments, and these.
 */
private[redis] object PackedRows {
  // Types of MessagePack.
  private val ShortText = 0xa0
  private val Text8 = 0xd9
  private val Text16 = 0xda
  private val Text32 = 0xdb
  private val Number32 = 0xce
  private val Array32 = 0xdd
  private val MaxShortText = 31
  private val MaxFixedNumber = 127

  def of(rows: Seq[RedisRow]): Array[Byte] = {
    var (bytes, elements) = (16, 0)
    rows.foreach { row =>
      bytes += row.bytes
      elements += 2 + row.arguments.length
    }
    val packed = new ByteArrayOutputStream(bytes)
    val out = new DataOutputStream(packed)
    out.writeByte(Array32)
    out.writeInt(elements)
    rows.foreach { row =>
      writeText(out, row.key)
      writeNumber(out, row.arguments.length)
      row.arguments.foreach(writeText(out, _))
    }
    packed.toByteArray
  }

  private def writeText(out: DataOutputStream, text: Array[Byte]): Unit = {
    val length = text.length
    if (length <= MaxShortText) {
      out.writeByte(ShortText | length)
    } else if (length <= 0xff) {
      out.writeByte(Text8)
      out.writeByte(length)
    } else if (length <= 0xffff) {
      out.writeByte(Text16)
      out.writeShort(length)
    } else {
      out.writeByte(Text32)
      out.writeInt(length)
    }
    out.write(text, 0, length)
  }

  private def writeNumber(out: DataOutputStream, number: Int): Unit =
    if (number <= MaxFixedNumber) out.writeByte(number)
    else {
      out.writeByte(Number32)
      out.writeInt(number)
    }
}
