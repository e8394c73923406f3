package org.apache.spark.sql.tailrace.checkpoint

import java.io.{IOException, OutputStream}
import java.nio.ByteBuffer
import java.nio.file.{FileAlreadyExistsException, Files, Path}
import java.nio.file.attribute.PosixFilePermission
import java.util.{Set => JSet, UUID}

import org.apache.hadoop.fs.{FileAlreadyExistsException => HadoopFileAlreadyExistsException}

import org.apache.spark.TaskContext
import org.apache.spark.internal.Logging
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream

/** A file that is written under a temporary name and appears, complete, when it is closed. */
private[checkpoint] final class AtomicFile private (target: Path, overwrite: Boolean, disk: Disk, draft: Draft)
    extends CancellableFSDataOutputStream(draft) {
  private var ended = false

  def this(target: Path, overwrite: Boolean, disk: Disk, permissions: JSet[PosixFilePermission]) =
    this(target, overwrite, disk, new Draft(target, disk, permissions))

  override def close(): Unit = end {
    flush()
    draft.finish()
    publish()
    // Before the folder is synced, so a machine that stops after the sync leaves no draft.
    draft.remove()
    disk.syncFolder(target.getParent)
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
    // A new file must never have old checksums. It may have none.
    if (overwrite || !Files.exists(target)) {
      disk.remove(sums)
    }
    if (overwrite) {
      disk.replace(draft.file, target)
    } else {
      try disk.publish(draft.file, target)
      catch {
        case _: FileAlreadyExistsException =>
          throw new HadoopFileAlreadyExistsException(s"$target exists already")
      }
    }
    disk.replace(draft.sums, sums)
  }
}

/** The temporary file and its checksums. */
private[checkpoint] final class Draft(target: Path, disk: Disk, permissions: JSet[PosixFilePermission])
    extends OutputStream
    with Logging {
  // The same names as Spark's own temporary files.
  private val task = Option(TaskContext.get()).fold("")(context => s".TID${context.taskAttemptId()}")
  val file: Path = target.resolveSibling(s".${target.getFileName}.${UUID.randomUUID}$task.tmp")
  val sums: Path = HadoopChecksums.of(file)

  private val channel = disk.create(file, permissions)
  private val buffer = new Array[Byte](Draft.BufferBytes)
  private var buffered = 0
  private val counted = new HadoopChecksums
  private var isBroken = false

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
    if (isBroken) {
      // A stream around this one closes it even if it could not write everything.
      throw new IOException(s"$target could not be written")
    }
    disk.sync(channel)
    channel.close()
    val written = disk.create(sums, permissions)
    try {
      disk.write(written, counted.result())
      disk.sync(written)
    } finally written.close()
  }

  /** Removes what is left, if anything. A failure only leaves an unused file, so it is logged and not thrown. */
  def remove(): Unit =
    Seq[() => Unit](() => channel.close(), () => disk.remove(file), () => disk.remove(sums)).foreach { one =>
      try one()
      catch {
        case failure: IOException => logWarning(s"Could not remove the temporary file $file", failure)
      }
    }

  private def send(bytes: Array[Byte], offset: Int, length: Int): Unit =
    if (!isBroken) {
      isBroken = true
      disk.write(channel, ByteBuffer.wrap(bytes, offset, length))
      counted.update(bytes, offset, length)
      isBroken = false
    }
}

private[checkpoint] object Draft {
  private val BufferBytes = 64 * 1024
  private val Name = raw"\..+\.[0-9a-f-]{36}(\.TID\d+)?\.tmp".r

  /** True for a temporary file, including one of a process that died. */
  def isOne(name: String): Boolean = Name.matches(name)
}
