package org.apache.spark.sql.tailrace.checkpoint

import java.io.IOException
import java.nio.ByteBuffer
import java.nio.channels.FileChannel
import java.nio.file.{FileAlreadyExistsException, FileSystemException, Files, Path}
import java.nio.file.StandardCopyOption.{ATOMIC_MOVE, REPLACE_EXISTING}
import java.nio.file.StandardOpenOption.{CREATE_NEW, READ, WRITE}
import java.nio.file.attribute.PosixFilePermission
import java.util.{Set => JSet}

import org.apache.hadoop.conf.Configuration

import org.apache.spark.sql.tailrace.conf.TailraceConf

/** The steps of an atomic write. The machine may stop between any two of them. */
private[checkpoint] trait Disk {
  def create(file: Path, permissions: JSet[PosixFilePermission]): FileChannel = {
    val channel = FileChannel.open(file, CREATE_NEW, WRITE)
    permit(file, permissions)
    channel
  }

  def createFolder(folder: Path, permissions: JSet[PosixFilePermission]): Unit = {
    Files.createDirectory(folder)
    permit(folder, permissions)
  }

  def write(channel: FileChannel, bytes: ByteBuffer): Unit =
    while (bytes.hasRemaining) {
      channel.write(bytes)
    }

  /** Returns when the written data would survive a power loss. */
  def sync(channel: FileChannel): Unit

  /** Renames the file; fails if the target exists, even if it has just been created. */
  def publish(draft: Path, target: Path): Unit =
    try Files.createLink(target, draft)
    catch {
      case taken: FileAlreadyExistsException => throw taken
      case _: UnsupportedOperationException | _: FileSystemException => renameIfFree(draft, target)
    }

  /** Renames the file, and replaces the target if it exists. */
  def replace(draft: Path, target: Path): Unit = Files.move(draft, target, ATOMIC_MOVE, REPLACE_EXISTING)

  def remove(file: Path): Unit = Files.deleteIfExists(file)

  /** A new name survives a power loss only after its folder is synced. */
  def syncFolder(folder: Path): Unit

  // As Hadoop does, independent of the process's umask. Some mounted file systems have no permissions.
  private def permit(file: Path, permissions: JSet[PosixFilePermission]): Unit =
    try Files.setPosixFilePermissions(file, permissions)
    catch {
      case _: UnsupportedOperationException => ()
    }

  // For mounted file systems without links. Another process can create the target between the check and the rename, as
  // it can with Spark's own manager.
  private def renameIfFree(draft: Path, target: Path): Unit = {
    if (Files.exists(target)) {
      throw new FileAlreadyExistsException(target.toString)
    }
    Files.move(draft, target, ATOMIC_MOVE)
  }
}

private[checkpoint] object Disk {
  private val NotSupported = Seq("Invalid argument", "Operation not supported", "Function not implemented")

  /** Spark copies the session's settings into Hadoop's. */
  def of(conf: Configuration): Disk = {
    val fsync = TailraceConf.CheckpointFsync
    if (Option(conf.get(fsync.key)).orElse(fsync.default).forall(fsync.parse)) Durable else Relaxed
  }

  trait Durable extends Disk {
    override def sync(channel: FileChannel): Unit = channel.force(true)

    override def syncFolder(folder: Path): Unit =
      try {
        val channel = FileChannel.open(folder, READ)
        try channel.force(true)
        finally channel.close()
      } catch {
        case refused: IOException if isNotSupported(refused) => ()
      }

    // Some mounted file systems cannot sync a folder, and fail with one of these messages. The exception of an
    // interrupted thread has no message.
    private def isNotSupported(refused: IOException): Boolean =
      Option(refused.getMessage).exists(said => NotSupported.exists(said.endsWith))
  }

  object Durable extends Durable

  /** Lets the operating system decide when to write: files survive a crash of the process, but not of the machine. */
  object Relaxed extends Disk {
    override def sync(channel: FileChannel): Unit = ()
    override def syncFolder(folder: Path): Unit = ()
  }
}
