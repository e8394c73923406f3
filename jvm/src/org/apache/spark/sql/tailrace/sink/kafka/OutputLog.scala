package org.apache.spark.sql.tailrace.sink.kafka

import java.io.IOException
import java.nio.charset.StandardCharsets.UTF_8

import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{ChecksumException, FileAlreadyExistsException, Path, PathFilter}
import org.apache.hadoop.fs.permission.FsPermission

import org.apache.spark.internal.Logging
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
import org.apache.spark.sql.tailrace.sink.kafka.Offsets.OutputOffsets
import org.apache.spark.sql.tailrace.sink.replay.QueryLog
import org.apache.spark.util.Utils

import tailrace.TailraceException

/**
 * The sink's progress. It is kept next to Spark's own logs in the checkpoint, and written by the same file manager: a
 * file per epoch with the output's end offsets, a file per topic with its end offsets before the query first wrote to
 * it, a file with the number of tasks that have written in transactions, a file with the run that owns the output,
 * a file with the queries that have worked on the open epoch, and a file with the secret that the output is
 * authenticated with, in a folder that only the query's user may read. [[SinkFile]] has their content.
 */
final class OutputLog(checkpoint: String, hadoop: Configuration) extends QueryLog with Logging {
  import OutputLog._

  private val root = new Path(checkpoint, Folder)
  private val epochs = new Path(root, "epochs")
  private val topics = new Path(root, "topics")
  private val writers = new Path(root, "transactional-writers")
  private val owner = new Path(root, "run")
  private val open = new Path(root, "open-epoch")
  private val privateFolder = new Path(root, "private")
  private val secretFile = new Path(privateFolder, "secret")
  private val files = CheckpointFileManager.create(root, hadoop)

  def epochEnd(epoch: Long): Option[EpochEnd] = read(new Path(epochs, epoch.toString), SinkFile.epochEnd)

  /** Overwrites what an earlier attempt of the epoch has logged. */
  def commitEpoch(epoch: Long, end: EpochEnd): Unit = {
    files.mkdirs(epochs)
    write(new Path(epochs, epoch.toString), end, overwrite = true)
  }

  /** Deletes epochs that no run can return to. */
  def purgeBefore(oldest: Long): Unit =
    if (files.exists(epochs)) {
      files.list(epochs).map(_.getPath).filter(_.getName.toLongOption.exists(_ < oldest)).foreach(files.delete)
    }

  /** Where a read-back starts: at the given end offsets, or where a topic ended before the query first wrote to it. */
  def startOffsets(ends: OutputOffsets): OutputOffsets =
    Offsets.later(topicStarts.map { case (topic, start) => topic -> start.offsets }, ends)

  override def queriesOf(epoch: Long): Option[Seq[String]] =
    read(open, SinkFile.openEpoch).filter(_.epoch == epoch).map(_.queries)

  override def setQueries(epoch: Long, queries: Seq[String]): Unit = {
    files.mkdirs(root)
    write(open, OpenEpoch(epoch, queries), overwrite = true)
  }

  /** Makes this run the owner of the output. */
  def claim(run: String): Unit = {
    files.mkdirs(root)
    write(owner, Owner(run), overwrite = true)
  }

  def isOwnedBy(run: String): Boolean = read(owner, SinkFile.owner).forall(_.run == run)

  /** The secret of the checkpoint, made by its first run. A copy of the checkpoint has the same one. */
  def secret(): SinkSecret =
    try {
      if (!files.exists(secretFile)) {
        files.mkdirs(privateFolder)
        // Before there is anything in it to read.
        makePrivate(privateFolder)
        try write(secretFile, StoredSecret(SinkSecret.random().toHex), overwrite = false)
        catch { case _: FileAlreadyExistsException => }
      }
      read(secretFile, SinkFile.secret).getOrElse(throw new IOException("it has been deleted"))
    } catch {
      case failure: IOException =>
        val error = new TailraceException(
          "TAILRACE_SINK_SECRET_NOT_READABLE",
          s"the file $secretFile of the checkpoint cannot be read or made: ${failure.getMessage}.",
          "give the query's user the right to read and write its folder.")
        error.initCause(failure)
        throw error
    }

  /** The largest number of tasks that have written in transactions. */
  def transactionalWriters: Int = read(writers, SinkFile.writers).fold(0)(_.number)

  /** To be called before the tasks write. */
  def addTransactionalWriters(number: Int): Unit = if (number > transactionalWriters) {
    files.mkdirs(root)
    write(writers, Writers(number), overwrite = true)
  }

  /**
   * To be called before the first record goes to a topic. Several tasks may add the same topic at the same time: the
   * first one wins.
   */
  def addTopic(topic: String, start: => TopicStart): Unit = {
    val file = new Path(topics, topic)
    if (!files.exists(file)) {
      files.mkdirs(topics)
      try write(file, start, overwrite = false)
      catch { case _: FileAlreadyExistsException => }
    }
  }

  /** By topic that the query has written to, where it ended before. */
  def topicStarts: Map[String, TopicStart] =
    if (!files.exists(topics)) Map.empty
    else files.list(topics, isTopic).map(_.getPath).flatMap { file =>
      read(file, SinkFile.topicStart).map(file.getName -> _)
    }.toMap

  private def makePrivate(folder: Path): Unit =
    try folder.getFileSystem(hadoop).setPermission(folder, new FsPermission("700"))
    catch {
      // Some file systems have no permissions.
      case NonFatal(reason) => logWarning(s"Other users may be able to read $folder: $reason")
    }

  /** The topic is another one than before: everything in it may have been written by this query. */
  def replaceTopic(topic: String, id: String): Unit =
    write(new Path(topics, topic), TopicStart(Map.empty, id), overwrite = true)

  private def write(file: Path, content: AnyRef, overwrite: Boolean): Unit = {
    val out = files.createAtomic(file, overwriteIfPossible = overwrite)
    try {
      out.write(SinkFile.write(content))
      out.close()
    } catch {
      case failure: Throwable =>
        out.cancel()
        throw failure
    }
  }

  private def read[T](file: Path, parse: String => Option[T]): Option[T] = Option.when(files.exists(file)) {
    val text =
      try Utils.tryWithResource(files.open(file))(in => new String(in.readAllBytes(), UTF_8))
      catch { case _: ChecksumException => throw damaged(file) }
    parse(text).getOrElse(throw damaged(file))
  }
}

object OutputLog {
  val Folder = "tailrace-sink"
  // Spark's file managers write a file under such a name first.
  private val isTopic: PathFilter = path => !(path.getName.startsWith(".") && path.getName.endsWith(".tmp"))

  private def damaged(file: Path) = new TailraceException(
    "TAILRACE_SINK_FILE_DAMAGED",
    s"$file in the checkpoint is damaged, or a newer version of Tailrace wrote it.",
    s"restore the checkpoint with its folder $Folder from a backup, or use the newer version. Without the folder the " +
      "query continues, but it writes the open epoch's rows again.")
}
