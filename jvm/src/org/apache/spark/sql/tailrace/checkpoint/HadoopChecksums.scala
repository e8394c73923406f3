package org.apache.spark.sql.tailrace.checkpoint

import java.io.{ByteArrayOutputStream, DataOutputStream}
import java.nio.ByteBuffer
import java.nio.file.Path
import java.util.zip.CRC32

/** The checksums of a file as Hadoop's local file system writes and verifies them: one for each 512 bytes. */
private[checkpoint] final class HadoopChecksums {
  import HadoopChecksums._

  private val bytes = new ByteArrayOutputStream
  private val out = new DataOutputStream(bytes)
  private val sum = new CRC32
  private var summed = 0
  out.write(Header)
  out.writeInt(BytesPerSum)

  def update(data: Array[Byte], offset: Int, length: Int): Unit = {
    var done = 0
    while (done < length) {
      val part = math.min(length - done, BytesPerSum - summed)
      sum.update(data, offset + done, part)
      summed += part
      done += part
      if (summed == BytesPerSum) {
        finishSum()
      }
    }
  }

  /** The whole checksum file, once all data has been added. */
  def result(): ByteBuffer = {
    if (summed > 0) {
      finishSum()
    }
    ByteBuffer.wrap(bytes.toByteArray)
  }

  private def finishSum(): Unit = {
    out.writeInt(sum.getValue.toInt)
    sum.reset()
    summed = 0
  }
}

private[checkpoint] object HadoopChecksums {
  private val Header = Array[Byte]('c', 'r', 'c', 0)
  private val BytesPerSum = 512

  /** The file in which Hadoop's local file system keeps a file's checksums. */
  def of(file: Path): Path = file.resolveSibling(s".${file.getFileName}.crc")
}
