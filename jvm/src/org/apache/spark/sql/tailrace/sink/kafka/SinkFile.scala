package org.apache.spark.sql.tailrace.sink.kafka

import java.nio.charset.StandardCharsets.UTF_8

import scala.util.Try

import org.json4s.{DefaultFormats, Formats}
import org.json4s.jackson.Serialization

import org.apache.spark.sql.tailrace.sink.dedup.ContentId
import org.apache.spark.sql.tailrace.sink.replay.MatchesLeft

// The content of the files in the checkpoint's sink folder. Stored as JSON: renaming a field breaks existing
// checkpoints, and the types are written out because json4s does not see through an alias.

/**
 * Where the output of an epoch ended.
 *
 * @param ends        the offsets after the query's last records
 * @param matchesLeft the matches before these offsets that have not been replayed, if rows are recognized by content
 * @param topicIds    by topic, the id that it had in its cluster
 * @param queries     the fingerprints of the queries whose rows may stand after these offsets; empty if unknown
 */
final case class EpochEnd(
    ends: Map[String, Map[String, Long]],
    matchesLeft: Option[MatchesLeft] = None,
    topicIds: Map[String, String] = Map.empty,
    queries: Seq[String] = Nil)

/**
 * Where a topic ended before the query first wrote to it.
 *
 * @param offsets by partition; a partition that is missing has nothing but the query's own records
 * @param id      the topic's id in its cluster; empty if unknown
 */
final case class TopicStart(offsets: Map[String, Long], id: String = TopicIds.Unknown)

/** How many tasks have written in transactions. */
private[kafka] final case class Writers(number: Int)

/** The run that owns the output. */
private[kafka] final case class Owner(run: String)

/**
 * The queries that have worked on an open epoch.
 *
 * @param queries their fingerprints
 */
private[kafka] final case class OpenEpoch(epoch: Long, queries: Seq[String])

/** What the output is authenticated with; see [[RecordMac]]. */
private[kafka] final case class StoredSecret(secret: String)

/** Writes and reads these files. What was not written by this sink, or is damaged, is read as None. */
private[kafka] object SinkFile {
  private val First = "v1"
  private val Second = "v2"
  private implicit val formats: Formats = DefaultFormats

  def write(content: AnyRef): Array[Byte] = {
    // Only this one has changed in a way that an older version would misread.
    val version = if (content.isInstanceOf[TopicStart]) Second else First
    s"$version\n${Serialization.write(content)}".getBytes(UTF_8)
  }

  def epochEnd(text: String): Option[EpochEnd] = read[EpochEnd](text, First) { end =>
    end.ends.forall { case (topic, offsets) => topic.nonEmpty && areOffsets(offsets) } &&
    end.matchesLeft.forall(areMatches) &&
    end.topicIds.forall { case (topic, id) => topic.nonEmpty && id != null } &&
    end.queries.forall(_ != null)
  }

  def topicStart(text: String): Option[TopicStart] =
    read[TopicStart](text, Second)(start => areOffsets(start.offsets) && start.id != null).orElse(
      read[Map[String, Long]](text, First)(areOffsets).map(TopicStart(_)))

  def writers(text: String): Option[Writers] = read[Writers](text, First)(_.number >= 0)

  def owner(text: String): Option[Owner] = read[Owner](text, First)(_.run != null)

  def secret(text: String): Option[SinkSecret] =
    read[StoredSecret](text, First)(_.secret != null).flatMap(stored => SinkSecret.parse(stored.secret))

  def openEpoch(text: String): Option[OpenEpoch] =
    read[OpenEpoch](text, First)(open => open.epoch >= 0 && open.queries.forall(_ != null))

  // json4s reads nearly anything: what is missing or of another kind becomes null or empty, or fails when it is used.
  private def read[T: Manifest](text: String, version: String)(isValid: T => Boolean): Option[T] =
    text.split("\n", 2) match {
      case Array(`version`, json) if json.startsWith("{") => Try(Serialization.read[T](json)).filter(isValid).toOption
      case _ => None
    }

  private def areMatches(left: MatchesLeft): Boolean =
    left.byTask.forall { case (task, ids) => isNumber(task) && ids.forall(ContentId.parse(_).isDefined) } &&
      left.until.values.forall(areOffsets) &&
      left.untilBySource.forall(_.forall { case (source, topics) =>
        isNumber(source) && topics.values.forall(areOffsets)
      })

  private def areOffsets(offsets: Map[String, Long]): Boolean =
    offsets.forall { case (partition, offset) => isNumber(partition) && offset >= 0 }

  private def isNumber(text: String): Boolean = text.toIntOption.exists(_ >= 0)
}
