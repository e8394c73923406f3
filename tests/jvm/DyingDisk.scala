package org.apache.spark.sql.tailrace.checkpoint

import java.nio.ByteBuffer
import java.nio.channels.FileChannel
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.Path
import java.util.concurrent.atomic.AtomicInteger

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{Path => HadoopPath}

import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager

/** A disk whose machine stops before the given step, counted from zero. Of a write, half is done. */
class DyingDisk(lastStep: Int, die: () => Nothing) extends Disk.Durable {
  private val steps = new AtomicInteger

  def taken: Int = steps.get()

  private def step[T](half: => Unit)(whole: => T): T =
    if (steps.getAndIncrement() < lastStep) {
      whole
    } else {
      half
      die()
    }

  override def create(file: Path): FileChannel = step(())(super.create(file))
  override def write(channel: FileChannel, bytes: ByteBuffer): Unit = step {
    bytes.limit(bytes.limit() / 2)
    super.write(channel, bytes)
  }(super.write(channel, bytes))
  override def sync(channel: FileChannel): Unit = step(())(super.sync(channel))
  override def publish(draft: Path, target: Path): Unit = step(())(super.publish(draft, target))
  override def replace(draft: Path, target: Path): Unit = step(())(super.replace(draft, target))
  override def remove(file: Path): Unit = step(())(super.remove(file))
  override def syncFolder(folder: Path): Unit = step(())(super.syncFolder(folder))
}

/** One checkpoint file, written on a disk that stops and read as Tailrace or as Spark reads it. */
object OneFile {
  private final class Stopped extends Error("the machine stopped")

  /** How many steps were tried, the one at which it was stopped included. */
  def write(path: String, text: String, overwrite: Boolean, lastStep: Int): Int = {
    val disk = new DyingDisk(lastStep, () => throw new Stopped)
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
    val disk = made.getOrElse(new DyingDisk(conf.getInt("spark.tailrace.testing.lastStep", 0), () => kill()))
    made = Some(disk)
    disk
  }

  private def kill(): Nothing = {
    new ProcessBuilder("kill", "-9", ProcessHandle.current().pid().toString).inheritIO().start().waitFor()
    throw new IllegalStateException("could not be killed")
  }
}
