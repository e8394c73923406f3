package org.apache.spark.sql.tailrace.origin

/** A record in a source, in the user's terms. */
final case class SourcePosition(topic: String, partition: Int, offset: Long)

object SourcePosition {

  /** In words, for an error: one record, or the records among which it is. */
  def describe(positions: Seq[SourcePosition]): String = positions.filter(_ != null).distinct match {
    case Seq() => "a record whose place in the source is not known"
    case Seq(one) => s"the record at topic '${one.topic}', partition ${one.partition}, offset ${one.offset}"
    case many =>
      val places = many.groupBy(at => (at.topic, at.partition)).toSeq.sortBy(_._1).map {
        case ((topic, partition), found) =>
          val offsets = found.map(_.offset)
          s"topic '$topic', partition $partition, offsets ${offsets.min} to ${offsets.max}"
      }
      s"one of ${many.size} records: ${places.mkString("; ")}"
  }
}
