package org.apache.spark.sql.tailrace.checkpoint

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, FSDataInputStream, Path, PathFilter}
import org.apache.hadoop.fs.local.LocalFs

import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream
import org.apache.spark.sql.internal.SQLConf

/**
 * The file manager of Spark's checkpoints (`spark.sql.streaming.checkpointFileManagerClass`): [[LocalCheckpointFiles]]
 * on local and mounted file systems, Spark's own on any other.
 */
class CheckpointFiles private[checkpoint] (root: Path, conf: Configuration, disk: Disk) extends CheckpointFileManager {

  /** The constructor that Spark calls. */
  def this(root: Path, conf: Configuration) = this(root, conf, Disk.of(conf))

  private val files: CheckpointFileManager =
    if (CheckpointFiles.isLocal(root, conf)) new LocalCheckpointFiles(root, conf, disk)
    else CheckpointFiles.sparksOwn(root, conf)

  override def createAtomic(path: Path, overwriteIfPossible: Boolean): CancellableFSDataOutputStream =
    files.createAtomic(path, overwriteIfPossible)
  override def open(path: Path): FSDataInputStream = files.open(path)
  override def list(path: Path, filter: PathFilter): Array[FileStatus] = files.list(path, filter)
  override def mkdirs(path: Path): Unit = files.mkdirs(path)
  override def exists(path: Path): Boolean = files.exists(path)
  override def delete(path: Path): Unit = files.delete(path)
  override def isLocal: Boolean = files.isLocal
  override def createCheckpointDirectory(): Path = files.createCheckpointDirectory()
  override def close(): Unit = files.close()
}

private object CheckpointFiles {
  private val LocalImplementation = "fs.AbstractFileSystem.file.impl"

  /** True for Hadoop's own local file system. A user may have configured another one that does more. */
  private def isLocal(root: Path, conf: Configuration): Boolean =
    root.getFileSystem(conf).getUri.getScheme == "file" && conf.get("fs.file.impl") == null &&
      conf.get(LocalImplementation, classOf[LocalFs].getName) == classOf[LocalFs].getName

  /** The manager that Spark uses if none is configured. */
  private def sparksOwn(root: Path, conf: Configuration): CheckpointFileManager = {
    val plain = new Configuration(conf)
    plain.unset(SQLConf.STREAMING_CHECKPOINT_FILE_MANAGER_CLASS.parent.key)
    CheckpointFileManager.create(root, plain)
  }
}
