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
 * Checkpoint files on a local or mounted file system. Hadoop's local file system starts a process for each change of a
 * permission and for each look at a link, about ten for one file; java.nio starts none. The files are the same as
 * Spark's, Hadoop's checksums beside them included, so that either can go on with the other's checkpoint.
 */
private[checkpoint] final class LocalCheckpointFiles(root: Path, conf: Configuration, disk: Disk)
    extends CheckpointFileManager {
  // Not the one that Hadoop would look up: Hive brings another for the same scheme.
  private val fs = new LocalFileSystem
  fs.initialize(FsConstants.LOCAL_FS_URI, conf)
  // Spark's own manager does not look at the checksums either. It can leave old ones beside a new file when it dies.
  fs.setVerifyChecksum(false)

  private val filePermissions = permissions(FsPermission.getFileDefault)
  private val folderPermissions = permissions(FsPermission.getDirDefault)

  override def createAtomic(path: Path, overwriteIfPossible: Boolean): CancellableFSDataOutputStream =
    new AtomicFile(local(path), overwriteIfPossible, disk, filePermissions)

  // Reading, listing and deleting start no process.
  override def open(path: Path): FSDataInputStream = fs.open(path)

  // Without what a process that died has left: Spark takes a new query's folder that is not empty for another's.
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
        // Tasks of a query make the same folders at the same time.
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
