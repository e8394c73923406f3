package org.apache.spark.sql.tailrace.operators.python

import java.io.{InputStream, OutputStream}
import java.nio.ByteBuffer
import java.nio.channels.{Channel, ReadableByteChannel, WritableByteChannel}

/**
 * Streams as channels, which Arrow requires. Java's own adapters close the stream in the middle of a message when their
 * thread is interrupted. These leave that to the stream, so the worker of a killed task can still end in order.
 */
private[python] object UninterruptibleChannel {
  private val BufferBytes = 8 * 1024

  def from(in: InputStream): ReadableByteChannel = new AlwaysOpen with ReadableByteChannel {
    private val buffer = new Array[Byte](BufferBytes)

    override def read(target: ByteBuffer): Int = {
      val count = in.read(buffer, 0, math.min(buffer.length, target.remaining))
      if (count > 0) {
        target.put(buffer, 0, count)
      }
      count
    }
  }

  def to(out: OutputStream): WritableByteChannel = new AlwaysOpen with WritableByteChannel {
    override def write(source: ByteBuffer): Int = {
      val count = source.remaining
      if (source.hasArray) {
        out.write(source.array, source.arrayOffset + source.position, count)
        source.position(source.limit)
      } else {
        val buffer = new Array[Byte](math.min(BufferBytes, count))
        while (source.hasRemaining) {
          val part = math.min(buffer.length, source.remaining)
          source.get(buffer, 0, part)
          out.write(buffer, 0, part)
        }
      }
      count
    }
  }

  private trait AlwaysOpen extends Channel {
    override def isOpen: Boolean = true

    override def close(): Unit = {}
  }
}
