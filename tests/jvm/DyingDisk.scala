package org.apache.spark.sql.tailrace.checkpoint

import java.nio.ByteBuffer
import java.nio.channels.FileChannel
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path}
import java.nio.file.attribute.PosixFilePermission
import java.util.{Set => JSet}
import java.util.concurrent.atomic.AtomicInteger

import scala.collection.mutable

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{Path => HadoopPath}

import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager

/**
 * A disk whose machine stops before the given step, counted from zero. Of a write, half is done. If it loses its power,
 * what was not synced is gone.
 */
class DyingDisk(lastStep: Int, losesPower: Boolean, die: () => Nothing) extends Disk.Durable {
  private val steps = new AtomicInteger
  private val unsynced = mutable.HashMap.empty[FileChannel, Set[Path]]

  def taken: Int = steps.get()

  override def create(file: Path, permissions: JSet[PosixFilePermission]): FileChannel = step(()) {
    val channel = super.create(file, permissions)
    unsynced(channel) = Set(file)
    channel
  }

  override def createFolder(folder: Path, permissions: JSet[PosixFilePermission]): Unit =
    step(())(super.createFolder(folder, permissions))

  override def write(channel: FileChannel, bytes: ByteBuffer): Unit = step {
    bytes.limit(bytes.limit() / 2)
    super.write(channel, bytes)
  }(super.write(channel, bytes))

  override def sync(channel: FileChannel): Unit = step(()) {
    super.sync(channel)
    unsynced.remove(channel)
  }

  override def publish(draft: Path, target: Path): Unit = step(()) {
    super.publish(draft, target)
    renamed(draft, target)
  }

  override def replace(draft: Path, target: Path): Unit = step(()) {
    super.replace(draft, target)
    renamed(draft, target)
  }

  override def remove(file: Path): Unit = step(())(super.remove(file))
  override def syncFolder(folder: Path): Unit = step(())(super.syncFolder(folder))

  private def renamed(draft: Path, target: Path): Unit =
    unsynced.mapValuesInPlace((_, names) => if (names(draft)) names + target else names)

  private def step[T](half: => Unit)(whole: => T): T = synchronized {
    if (steps.getAndIncrement() < lastStep) {
      whole
    } else {
      half
      if (losesPower) {
        unsynced.values.flatten.filter(Files.exists(_)).foreach(Files.write(_, Array.emptyByteArray))
      }
      die()
    }
  }
}

/** One checkpoint file, written on a disk that stops and read as Tailrace or as Spark reads it. */
object OneFile {
  private final class Stopped extends Error("the machine stopped")

  /** How many steps were tried, the one at which it was stopped included. */
  def write(path: String, text: String, overwrite: Boolean, lastStep: Int, losesPower: Boolean): Int = {
    val disk = new DyingDisk(lastStep, losesPower, () => throw new Stopped)
    val target = new HadoopPath(path)
    try {
      val file = new CheckpointFiles(target.getParent, new Configuration, disk).createAtomic(target, overwrite)
      file.write(text.getBytes(UTF_8))
      file.close()
    } catch {
      case _: Stopped => ()
    }
    disk.taken
  }

  def write(path: String, text: String, overwrite: Boolean, manager: String): Unit = {
    val file = managerOf(path, manager).createAtomic(new HadoopPath(path), overwrite)
    file.write(text.getBytes(UTF_8))
    file.close()
  }

  /** By a stop of its query, while the folder is synced. */
  def interrupt(path: String, text: String): Unit = {
    val disk = new Disk.Durable {
      override def syncFolder(folder: Path): Unit = {
        Thread.currentThread().interrupt()
        super.syncFolder(folder)
      }
    }
    val target = new HadoopPath(path)
    try {
      val file = new CheckpointFiles(target.getParent, new Configuration, disk).createAtomic(target, false)
      file.write(text.getBytes(UTF_8))
      file.close()
    } finally {
      Thread.interrupted()
    }
  }

  def cancel(path: String, text: String): Unit = {
    val file = managerOf(path, "tailrace").createAtomic(new HadoopPath(path), true)
    file.write(text.getBytes(UTF_8))
    file.cancel()
    file.close()
  }

  /** Null if there is none. */
  def read(path: String, manager: String): String = {
    val files = managerOf(path, manager)
    val file = new HadoopPath(path)
    if (!files.exists(file)) {
      null
    } else {
      val in = files.open(file)
      try new String(in.readAllBytes(), UTF_8)
      finally in.close()
    }
  }

  def managerOf(path: String, manager: String): CheckpointFileManager = {
    val conf = new Configuration
    if (manager == "tailrace") {
      conf.set("spark.sql.streaming.checkpointFileManagerClass", classOf[CheckpointFiles].getName)
    }
    CheckpointFileManager.create(new HadoopPath(path).getParent, conf)
  }
}

/** For a query: the process kills itself before a step of the given epoch's commit. */
class KilledCheckpointFiles(root: HadoopPath, conf: Configuration)
    extends CheckpointFiles(root, conf, KilledCheckpointFiles.disk(conf))

object KilledCheckpointFiles {
  private var made: Option[Disk] = None

  /** One for all: the steps of a query's commit are counted over its files. */
  def disk(conf: Configuration): Disk = synchronized {
    val disk =
      made.getOrElse(new DyingDisk(conf.getInt("spark.tailrace.testing.lastStep", 0), losesPower = false, () => kill()))
    made = Some(disk)
    disk
  }

  private def kill(): Nothing = {
    System.err.println("killing myself")
    new ProcessBuilder("kill", "-9", ProcessHandle.current().pid().toString).inheritIO().start().waitFor()
    throw new IllegalStateException("could not be killed")
  }
}
