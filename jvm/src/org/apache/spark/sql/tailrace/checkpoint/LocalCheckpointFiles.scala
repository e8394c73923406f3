package org.apache.spark.sql.tailrace.checkpoint

import java.io.FileNotFoundException
import java.nio.file.{FileAlreadyExistsException, Files, Path => LocalPath, Paths}
import java.nio.file.attribute.{PosixFilePermission, PosixFilePermissions}
import java.util.{Set => JSet}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, FsConstants, FSDataInputStream, LocalFileSystem, Path, PathFilter}
import org.apache.hadoop.fs.permission.FsPermission

import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream

/**
 * Checkpoint files on a local or mounted file system. Hadoop's local file system starts a process to change a
 * permission or to read a link, about ten for each file; java.nio starts none. The files, including Hadoop's checksums,
 * are the same as Spark's, so each can continue the other's checkpoint.
 */
private[checkpoint] final class LocalCheckpointFiles(root: Path, conf: Configuration, disk: Disk)
    extends CheckpointFileManager {
  // Not by lookup: Hive registers another file system for the same scheme.
  private val fs = new LocalFileSystem
  fs.initialize(FsConstants.LOCAL_FS_URI, conf)
  // Spark's own manager does not verify checksums either. If it dies, it can leave old ones next to a new file.
  fs.setVerifyChecksum(false)

  private val filePermissions = permissions(FsPermission.getFileDefault)
  private val folderPermissions = permissions(FsPermission.getDirDefault)

  override def createAtomic(path: Path, overwriteIfPossible: Boolean): CancellableFSDataOutputStream =
    new AtomicFile(local(path), overwriteIfPossible, disk, filePermissions)

  // Reading, listing and deleting start no process.
  override def open(path: Path): FSDataInputStream = fs.open(path)

  // Without temporary files of processes that died: because of them, Spark would take a new query's folder for a used
  // one.
  override def list(path: Path, filter: PathFilter): Array[FileStatus] =
    fs.listStatus(path, (file: Path) => !Draft.isOne(file.getName) && filter.accept(file))

  override def delete(path: Path): Unit =
    try fs.delete(path, true)
    catch {
      case _: FileNotFoundException => ()
    }

  override def mkdirs(path: Path): Unit = {
    val folder = local(path)
    val missing = Iterator.iterate(folder)(_.getParent).takeWhile(one => one != null && !Files.isDirectory(one)).toSeq
    missing.reverse.foreach { one =>
      try disk.createFolder(one, folderPermissions)
      catch {
        // Tasks of a query create the same folders concurrently.
        case _: FileAlreadyExistsException if Files.isDirectory(one) => ()
      }
      disk.syncFolder(one.getParent)
    }
  }

  override def exists(path: Path): Boolean = Files.exists(local(path))

  override def isLocal: Boolean = true

  override def createCheckpointDirectory(): Path = {
    val qualified = fs.makeQualified(root)
    mkdirs(qualified)
    qualified
  }

  private def permissions(default: FsPermission): JSet[PosixFilePermission] =
    PosixFilePermissions.fromString(default.applyUMask(FsPermission.getUMask(conf)).toString)

  private def local(path: Path): LocalPath = Paths.get(fs.makeQualified(path).toUri.getPath)
}
