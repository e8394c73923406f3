package org.apache.spark.sql.tailrace.sink.kafka

import java.nio.charset.StandardCharsets.UTF_8

import scala.util.Try

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileAlreadyExistsException, Path, PathFilter}
import org.json4s.{DefaultFormats, Formats}
import org.json4s.jackson.Serialization

import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
import org.apache.spark.util.Utils

/**
 * Where the output of an epoch ended: by topic and partition, the offset behind the last record of this query.
 *
 * @param matchesLeft what stands before that and has not come again yet, where rows are known by their content
 */
final case class EpochEnd(ends: Map[String, Map[String, Long]], matchesLeft: Option[MatchesLeft] = None)

/** See [[MatchesAhead]]: by task their ids; by topic and partition of the sources, the last record to wait for. */
final case class MatchesLeft(byTask: Map[String, Seq[String]], until: Map[String, Map[String, Long]])

/**
 * How far the query's output is, beside Spark's own logs in the checkpoint and through the same file manager: one file an
 * epoch, one for each topic with its ends before the query first wrote to it, and one that says how many tasks have written
 * in transactions.
 */
final class OutputLog(checkpoint: String, hadoop: Configuration) {
  import OutputLog._

  private val root = new Path(checkpoint, Folder)
  private val epochs = new Path(root, "epochs")
  private val topics = new Path(root, "topics")
  private val writers = new Path(root, "transactional-writers")
  private val owner = new Path(root, "run")
  private val files = CheckpointFileManager.create(root, hadoop)

  def endOf(epoch: Long): Option[EpochEnd] = read[EpochEnd](new Path(epochs, epoch.toString))

  /** Once more for an epoch that is repeated. */
  def ended(epoch: Long, end: EpochEnd): Unit = {
    files.mkdirs(epochs)
    write(new Path(epochs, epoch.toString), end, overwrite = true)
  }

  /** The epochs before `oldest` will not be gone back to. */
  def forgetBefore(oldest: Long): Unit =
    if (files.exists(epochs)) {
      files.list(epochs).map(_.getPath).filter(_.getName.toLongOption.exists(_ < oldest)).foreach(files.delete)
    }

  /** Where to begin reading what was written since: each topic's ends, or where it was when it was first written to. */
  def beginnings(ends: Map[String, Map[String, Long]]): Map[String, Map[String, Long]] =
    SinkRun.later(knownTopics.map(topic => topic -> beginningOf(topic).getOrElse(Map.empty)).toMap, ends)

  /** From now on the output is this run's, and no older one's. */
  def claim(run: String): Unit = {
    files.mkdirs(root)
    write(owner, Owner(run), overwrite = true)
  }

  def isOf(run: String): Boolean = read[Owner](owner).forall(_.run == run)

  /** The most tasks that have written in transactions. */
  def transactionalWriters: Int = read[Writers](writers).fold(0)(_.number)

  /** Before they do. */
  def willWriteInTransactions(number: Int): Unit = if (number > transactionalWriters) {
    files.mkdirs(root)
    write(writers, Writers(number), overwrite = true)
  }

  private def knownTopics: Seq[String] =
    if (files.exists(topics)) files.list(topics, isTopic).map(_.getPath.getName).toSeq else Nil

  /** The topic's ends before the first record of this query, by partition. */
  private def beginningOf(topic: String): Option[Map[String, Long]] = read[Map[String, Long]](new Path(topics, topic))

  /** Before the first record goes to the topic; several tasks may come to it at the same time. */
  def begins(topic: String, ends: => Map[String, Long]): Unit = {
    val file = new Path(topics, topic)
    if (!files.exists(file)) {
      files.mkdirs(topics)
      try write(file, ends, overwrite = false)
      catch { case _: FileAlreadyExistsException => }
    }
  }

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
      throw new IllegalStateException(s"$file is not a file of Tailrace's sink, or of another version"))
  }
}

object OutputLog {
  val Folder = "tailrace-sink"
  private val Version = "v1"
  // What a file is written as before it has its name, by any of Spark's file managers.
  private val isTopic: PathFilter = path => !(path.getName.startsWith(".") && path.getName.endsWith(".tmp"))
  private final case class Writers(number: Int)
  private final case class Owner(run: String)
  private implicit val formats: Formats = DefaultFormats
}
