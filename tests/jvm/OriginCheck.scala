package tailrace.testing

import java.util.concurrent.atomic.AtomicLong

import org.apache.spark.sql.{DataFrame, Encoders, ForeachWriter, Row}
import org.apache.spark.sql.tailrace.origin.CurrentRow

/** A sink that compares what the engine says of a row's origin with what the row itself says in its columns t, p and o. */
class OriginCheck extends ForeachWriter[Row] {
  override def open(partition: Long, epoch: Long): Boolean = true

  override def process(row: Row): Unit = {
    val current = CurrentRow.ofThisTask()
    val said = s"${row.getAs[String]("t")}/${row.getAs[Int]("p")}/${row.getAs[Long]("o")}"
    val known =
      current.partitions.get(current.partitionIndex).map(at => s"${at.topic}/${at.partition}/${current.offset}")
    OriginCheck.rows.incrementAndGet()
    if (known.isEmpty) {
      OriginCheck.unknown.incrementAndGet()
    } else if (!known.contains(said)) {
      OriginCheck.wrong.incrementAndGet()
      OriginCheck.example = s"the row is $said, the engine says ${known.getOrElse("nothing")}"
    }
  }

  override def close(failure: Throwable): Unit = ()
}

object OriginCheck {
  val rows = new AtomicLong
  val wrong = new AtomicLong
  val unknown = new AtomicLong
  @volatile var example: String = ""

  def reset(): Unit = {
    rows.set(0)
    wrong.set(0)
    unknown.set(0)
    example = ""
  }

  def seen(): Long = rows.get()
  def mismatches(): Long = wrong.get()
  def withoutOrigin(): Long = unknown.get()

  /** What breaks the mapping: a function that asks for the next row before it gives this one. */
  def readingAhead(rows: DataFrame): DataFrame =
    rows.mapPartitions((input: Iterator[Row]) => new OneAhead(input))(Encoders.row(rows.schema))
}

class OneAhead(input: Iterator[Row]) extends Iterator[Row] {
  private var following = if (input.hasNext) Some(input.next()) else None

  override def hasNext: Boolean = following.isDefined

  override def next(): Row = {
    val row = following.get
    following = if (input.hasNext) Some(input.next()) else None
    row
  }
}
