package org.apache.spark.sql.tailrace.checkpoint

import java.io.FileNotFoundException
import java.nio.file.{Files, Path => LocalPath, Paths}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, FsConstants, FSDataInputStream, LocalFileSystem, Path, PathFilter}

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

  override def createAtomic(path: Path, overwriteIfPossible: Boolean): CancellableFSDataOutputStream =
    new AtomicFile(local(path), overwriteIfPossible, disk)

  // Reading, listing and deleting start no process, and Hadoop verifies its checksums.
  override def open(path: Path): FSDataInputStream = fs.open(path)

  override def list(path: Path, filter: PathFilter): Array[FileStatus] = fs.listStatus(path, filter)

  override def delete(path: Path): Unit =
    try fs.delete(path, true)
    catch {
      case _: FileNotFoundException => ()
    }

  override def mkdirs(path: Path): Unit = {
    val folder = local(path)
    val missing = Iterator.iterate(folder)(_.getParent).takeWhile(one => one != null && !Files.exists(one)).toSeq
    Files.createDirectories(folder)
    missing.flatMap(one => Option(one.getParent)).foreach(disk.syncFolder)
  }

  override def exists(path: Path): Boolean = Files.exists(local(path))

  override def isLocal: Boolean = true

  override def createCheckpointDirectory(): Path = {
    val qualified = fs.makeQualified(root)
    mkdirs(qualified)
    qualified
  }

  private def local(path: Path): LocalPath = Paths.get(fs.makeQualified(path).toUri.getPath)
}
