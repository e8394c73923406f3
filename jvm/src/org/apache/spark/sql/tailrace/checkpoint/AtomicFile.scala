package org.apache.spark.sql.tailrace.checkpoint

import java.io.OutputStream
import java.nio.ByteBuffer
import java.nio.file.{FileAlreadyExistsException, Path}
import java.util.UUID

import org.apache.hadoop.fs.{FileAlreadyExistsException => HadoopFileAlreadyExistsException}

import org.apache.spark.TaskContext
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream

/** A file that is written under a name that nobody looks at, and is there all at once when it is closed. */
private[checkpoint] final class AtomicFile private (target: Path, overwrite: Boolean, disk: Disk, draft: Draft)
    extends CancellableFSDataOutputStream(draft) {
  private var ended = false

  def this(target: Path, overwrite: Boolean, disk: Disk) = this(target, overwrite, disk, new Draft(target, disk))

  override def close(): Unit = end {
    flush()
    draft.finish()
    publish()
  }

  override def cancel(): Unit = end(())

  private def end(work: => Unit): Unit = synchronized {
    if (!ended) {
      ended = true
      try work
      finally draft.remove()
    }
  }

  private def publish(): Unit = {
    val sums = HadoopChecksums.of(target)
    if (overwrite) {
      // Old checksums must never lie beside a new file. A file without any is read unverified.
      disk.remove(sums)
      disk.replace(draft.file, target)
    } else {
      try disk.publish(draft.file, target)
      catch {
        case _: FileAlreadyExistsException =>
          throw new HadoopFileAlreadyExistsException(s"$target exists already")
      }
    }
    disk.replace(draft.sums, sums)
    disk.syncFolder(target.getParent)
  }
}

/** A file under construction and its checksums. */
private[checkpoint] final class Draft(target: Path, disk: Disk) extends OutputStream {
  // Named as Spark names its own, so that either sweeps up what the other left behind.
  private val task = Option(TaskContext.get()).fold("")(context => s".TID${context.taskAttemptId()}")
  val file: Path = target.resolveSibling(s".${target.getFileName}.${UUID.randomUUID}$task.tmp")
  val sums: Path = HadoopChecksums.of(file)

  private val channel = disk.create(file)
  private val buffer = new Array[Byte](Draft.BufferBytes)
  private var buffered = 0
  private val counted = new HadoopChecksums

  override def write(byte: Int): Unit = {
    if (buffered == buffer.length) {
      flush()
    }
    buffer(buffered) = byte.toByte
    buffered += 1
  }

  override def write(bytes: Array[Byte], offset: Int, length: Int): Unit =
    if (length > buffer.length - buffered) {
      flush()
      send(bytes, offset, length)
    } else {
      System.arraycopy(bytes, offset, buffer, buffered, length)
      buffered += length
    }

  override def flush(): Unit =
    if (buffered > 0) {
      send(buffer, 0, buffered)
      buffered = 0
    }

  def finish(): Unit = {
    flush()
    disk.sync(channel)
    channel.close()
    val written = disk.create(sums)
    try {
      disk.write(written, counted.result())
      disk.sync(written)
    } finally written.close()
  }

  def remove(): Unit = {
    channel.close()
    disk.remove(file)
    disk.remove(sums)
  }

  private def send(bytes: Array[Byte], offset: Int, length: Int): Unit = {
    disk.write(channel, ByteBuffer.wrap(bytes, offset, length))
    counted.update(bytes, offset, length)
  }
}

private object Draft {
  private val BufferBytes = 64 * 1024
}
