package org.apache.spark.sql.tailrace.operators.python

import java.io.{FilterInputStream, InputStream}

/** Counts the bytes that were read, which tells a cut-off message from one that has not begun. */
private[python] final class CountingInput(stream: InputStream) extends FilterInputStream(stream) {
  private var count = 0L

  def bytesRead: Long = count

  override def read(): Int = {
    val byte = super.read()
    if (byte >= 0) {
      count += 1
    }
    byte
  }

  override def read(target: Array[Byte], offset: Int, length: Int): Int = {
    val read = super.read(target, offset, length)
    count += math.max(0, read)
    read
  }
}
