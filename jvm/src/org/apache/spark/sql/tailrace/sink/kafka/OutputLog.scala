package org.apache.spark.sql.tailrace.sink.kafka

import java.nio.charset.StandardCharsets.UTF_8

import scala.util.Try

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileAlreadyExistsException, Path, PathFilter}
import org.json4s.{DefaultFormats, Formats}
import org.json4s.jackson.Serialization

import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
import org.apache.spark.sql.tailrace.sink.kafka.Offsets.OutputOffsets
import org.apache.spark.util.Utils

/**
 * Where the output of an epoch ended. Stored as JSON: renaming a field breaks existing checkpoints, and the types are
 * written out because json4s does not see through an alias.
 *
 * @param ends        the offsets after the query's last records
 * @param matchesLeft the matches before these offsets that have not been replayed, if rows are recognised by content
 */
final case class EpochEnd(ends: Map[String, Map[String, Long]], matchesLeft: Option[MatchesLeft] = None)

/**
 * The stored form of [[UnreplayedMatches]].
 *
 * @param byTask        content ids by task
 * @param until         as an older version wrote it: like `untilBySource`, for all sources at once
 * @param untilBySource by number of the source, topic and partition, the last record that they can be replayed from
 */
final case class MatchesLeft(
    byTask: Map[String, Seq[String]],
    until: Map[String, Map[String, Long]],
    untilBySource: Option[Map[String, Map[String, Map[String, Long]]]] = None)

/**
 * The sink's progress. It is kept beside Spark's own logs in the checkpoint, and written by the same file manager: a
 * file per epoch with the output's end offsets, a file per topic with its end offsets before the query first wrote to
 * it, a file with the number of tasks that have written in transactions, and a file with the run that owns the output.
 */
final class OutputLog(checkpoint: String, hadoop: Configuration) {
  import OutputLog._

  private val root = new Path(checkpoint, Folder)
  private val epochs = new Path(root, "epochs")
  private val topics = new Path(root, "topics")
  private val writers = new Path(root, "transactional-writers")
  private val owner = new Path(root, "run")
  private val files = CheckpointFileManager.create(root, hadoop)

  def epochEnd(epoch: Long): Option[EpochEnd] = read[EpochEnd](new Path(epochs, epoch.toString))

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
    Offsets.later(knownTopics.map(topic => topic -> topicStart(topic).getOrElse(Map.empty)).toMap, ends)

  /** Makes this run the owner of the output. */
  def claim(run: String): Unit = {
    files.mkdirs(root)
    write(owner, Owner(run), overwrite = true)
  }

  def isOwnedBy(run: String): Boolean = read[Owner](owner).forall(_.run == run)

  /** The largest number of tasks that have written in transactions. */
  def transactionalWriters: Int = read[Writers](writers).fold(0)(_.number)

  /** To be called before the tasks write. */
  def addTransactionalWriters(number: Int): Unit = if (number > transactionalWriters) {
    files.mkdirs(root)
    write(writers, Writers(number), overwrite = true)
  }

  /**
   * To be called before the first record goes to a topic. Several tasks may add the same topic at the same time: the
   * first one wins.
   *
   * @param ends the topic's end offsets by partition
   */
  def addTopic(topic: String, ends: => Map[String, Long]): Unit = {
    val file = new Path(topics, topic)
    if (!files.exists(file)) {
      files.mkdirs(topics)
      try write(file, ends, overwrite = false)
      catch { case _: FileAlreadyExistsException => }
    }
  }

  private def knownTopics: Seq[String] =
    if (files.exists(topics)) files.list(topics, isTopic).map(_.getPath.getName).toSeq else Nil

  private def topicStart(topic: String): Option[Map[String, Long]] = read[Map[String, Long]](new Path(topics, topic))

  private def write(file: Path, content: AnyRef, overwrite: Boolean): Unit = {
    val out = files.createAtomic(file, overwriteIfPossible = overwrite)
    try {
      out.write(s"$Version\n${Serialization.write(content)}".getBytes(UTF_8))
      out.close()
    } catch {
      case failure: Throwable =>
        out.cancel()
        throw failure
    }
  }

  private def read[T: Manifest](file: Path): Option[T] = Option.when(files.exists(file)) {
    val text = Utils.tryWithResource(files.open(file))(in => new String(in.readAllBytes(), UTF_8))
    val lines = text.split("\n", 2)
    Try(Serialization.read[T](lines(1))).filter(_ => lines(0) == Version).getOrElse(
      throw new IllegalStateException(s"$file was not written by Tailrace's sink, or by another version of it"))
  }
}

object OutputLog {
  val Folder = "tailrace-sink"
  private val Version = "v1"
  // Spark's file managers write a file under such a name first.
  private val isTopic: PathFilter = path => !(path.getName.startsWith(".") && path.getName.endsWith(".tmp"))
  private final case class Writers(number: Int)
  private final case class Owner(run: String)
  private implicit val formats: Formats = DefaultFormats
}
