package org.apache.spark.sql.tailrace.origin

/** The position of a record in a source. */
final case class SourcePosition(in: SourcePartition, offset: Long) {
  def topic: String = in.topic
  def partition: Int = in.partition
}

object SourcePosition {

  /** For error texts: the record, or the records that it is one of. */
  def describe(positions: Seq[SourcePosition]): String = positions.filter(_ != null).distinct match {
    case Seq() => "a record of unknown origin"
    case Seq(one) => s"the record at topic '${one.topic}', partition ${one.partition}, offset ${one.offset}"
    case many =>
      val ranges = many.groupBy(at => (at.topic, at.partition)).toSeq.sortBy(_._1).map {
        case ((topic, partition), found) =>
          val offsets = found.map(_.offset)
          s"topic '$topic', partition $partition, offsets ${offsets.min} to ${offsets.max}"
      }
      s"one of ${many.size} records: ${ranges.mkString("; ")}"
  }
}
