package org.apache.spark.sql.tailrace.preflight

import java.io.{BufferedReader, File, InputStreamReader}
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path => LocalPath, Paths}

import scala.jdk.CollectionConverters._
import scala.util.{Try, Using}
import scala.util.control.NonFatal

import org.apache.hadoop.fs.{FileSystem, Path}
import org.json4s.jackson.JsonMethods.parse

import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.checkpointing.{OffsetSeqMetadata, OffsetSeqMetadataBase}

import tailrace.contract.RawJson

/** Reads the contents of a checkpoint's folder, and never writes to it. */
private[preflight] final class Checkpoint(location: String, session: SparkSession) {
  private val root = new Path(location)
  private val files = Try(root.getFileSystem(session.sessionState.newHadoopConf()))

  private def fs: FileSystem = files.get

  private val lastOffsets = latest("offsets")
  private val lastCommit = latest("commits")

  /** The settings that the query must keep, from the last committed epoch. */
  def settings: Option[OffsetSeqMetadataBase] =
    for {
      epoch <- lastOffsets
      lines = read(new Path(root, s"offsets/$epoch"))
      json <- lines.lift(1)
      metadata <- Try(OffsetSeqMetadata(json)).toOption
    } yield metadata

  def nextEpoch: Long = lastCommit.map(_ + 1).getOrElse(0)

  def hasState: Boolean = operators.nonEmpty

  /** Copies the small files that describe the state, and not the state itself. */
  def copyStateSchemas(target: File): Unit = {
    // By name: next to them are as many files as partitions times retained epochs.
    val folders = Seq("*/_metadata", "*/_stateSchema", "*/0/_metadata", "*/0/*/_metadata")
    folders.flatMap(folder => fs.globStatus(new Path(root, s"state/$folder")).toSeq).foreach { folder =>
      val below = fs.makeQualified(root).toUri.relativize(fs.makeQualified(folder.getPath).toUri).getPath
      fs.copyToLocalFile(false, folder.getPath, new Path(new File(target, below).toURI), true)
    }
    // Spark checks that the epoch is in the log before it reads the epoch's state metadata.
    val offsets = Files.createDirectories(target.toPath.resolve("offsets"))
    lastOffsets.foreach(epoch => Files.createFile(offsets.resolve(epoch.toString)))
  }

  def description: CheckpointDescription = {
    val problem = reachable
    CheckpointDescription(
      location,
      problem,
      exists = problem.isEmpty && exists("metadata"),
      queryId,
      epoch = lastCommit,
      // The committed ones: micro-batch writes the end of a batch before it runs.
      offsets = lastCommit.orElse(lastOffsets).map(sourceOffsets).getOrElse(Nil),
      commitVersion = lastCommit.flatMap(epoch => read(new Path(root, s"commits/$epoch")).headOption),
      operators)
  }

  private def queryId: Option[String] =
    Try((parse(read(new Path(root, "metadata")).mkString) \ "id").values.toString).toOption

  /** The position in each source, as the source wrote it. */
  private def sourceOffsets(epoch: Long): Seq[Option[RawJson]] =
    read(new Path(root, s"offsets/$epoch")).drop(2).map(line => Option.when(isJson(line))(RawJson(line)))

  private def isJson(line: String): Boolean = line != "-" && Try(parse(line)).isSuccess

  /** Spark's names of the stateful operators. */
  private def operators: Seq[String] = Try {
    val folders = fs.listStatus(new Path(root, "state")).toSeq.filter(_.isDirectory).map(_.getPath)
    folders.filter(_.getName.forall(_.isDigit)).sortBy(_.getName.toInt).map { folder =>
      val v1 = new Path(folder, "_metadata/metadata")
      val v2 = new Path(folder, "_metadata/v2")
      val file = if (fs.exists(v1)) v1 else fs.listStatus(v2).map(_.getPath).maxBy(_.getName)
      (parse(read(file).drop(1).mkString) \ "operatorInfo" \ "operatorName").values.toString
    }
  }.getOrElse(Nil)

  private def exists(name: String): Boolean = Try(fs.exists(new Path(root, name))).getOrElse(false)

  /** The number of a log's last entry. */
  private def latest(log: String): Option[Long] =
    Try(fs.listStatus(new Path(root, log)).toSeq).getOrElse(Nil).flatMap(_.getPath.getName.toLongOption).maxOption

  private def read(file: Path): Seq[String] = Try {
    Using.resource(new BufferedReader(new InputStreamReader(fs.open(file), UTF_8)))(_.lines().iterator().asScala.toList)
  }.getOrElse(Nil)

  /** Why a query could not write here, as far as can be told without writing. */
  private def reachable: Option[String] =
    try {
      if (fs.getUri.getScheme == "file")
        Checkpoint.obstacleIn(Paths.get(Path.getPathWithoutSchemeAndAuthority(root).toString))
      else {
        fs.exists(root)
        None
      }
    } catch {
      case NonFatal(failure) => Some(Option(failure.getMessage).getOrElse(failure.toString))
    }
}

private[preflight] object Checkpoint {
  val LocationOption = "checkpointLocation"
  private val LocationKey = "spark.sql.streaming.checkpointLocation"

  /** The location from the writer's options or the session's settings. */
  def of(session: SparkSession, options: Map[String, String]): Option[Checkpoint] = {
    val own = CaseInsensitiveMap(options)
    val below = session.conf.getOption(LocationKey).flatMap(root => own.get("queryName").map(name => s"$root/$name"))
    own.get(LocationOption).orElse(below).map(new Checkpoint(_, session))
  }

  private def obstacleIn(folder: LocalPath): Option[String] = {
    val existing = Iterator.iterate(folder.toAbsolutePath)(_.getParent).dropWhile(path => !Files.exists(path)).next()
    if (!Files.isDirectory(existing)) Some(s"$existing is a file, not a folder")
    else if (!Files.isWritable(existing)) Some(s"$existing cannot be written")
    else if (existing != folder.toAbsolutePath) obstacleBelow(existing)
    else None
  }

  // Some file systems promise more than they keep. This is not yet the checkpoint's folder.
  private def obstacleBelow(parent: LocalPath): Option[String] =
    try {
      Files.delete(Files.createTempDirectory(parent, ".tailrace-check"))
      None
    } catch {
      case _: java.io.IOException => Some(s"cannot create a folder in $parent")
    }
}
