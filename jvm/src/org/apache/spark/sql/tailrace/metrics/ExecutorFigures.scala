package org.apache.spark.sql.tailrace.metrics

import java.util.{Set => JSet}
import java.util.concurrent.ConcurrentHashMap

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import org.apache.spark.TaskContext

/** What the tasks of this JVM have recorded and the reporter has not fetched yet. */
private[tailrace] object ExecutorFigures {
  private val series = ConcurrentHashMap.newKeySet[Series]()
  private val sources = ConcurrentHashMap.newKeySet[SourceProbe]()
  private val badRecords = new ConcurrentHashMap[String, BadRecordsSkipped]
  private val sinks = ConcurrentHashMap.newKeySet[SinkProbe]()

  /** Keeps the series open as long as the task runs. */
  def open(opened: Series): Series = {
    series.add(opened)
    TaskContext.get().addTaskCompletionListener[Unit](_ => opened.close())
    opened
  }

  def open(opened: SourceProbe): SourceProbe = {
    sources.add(opened)
    opened
  }

  def open(opened: SinkProbe): SinkProbe = {
    sinks.add(opened)
    opened
  }

  /** Counts a bad record. */
  def badRecord(run: String, error: String): Unit =
    badRecords.merge(run, BadRecordsSkipped(run, 1, error), (before, one) => one.copy(records = before.records + 1))

  // Only one thread at a time may call the following methods.

  def takeSeries(): Array[RecordedSeries] = {
    val merged = mutable.HashMap.empty[SeriesKey, BucketCounts]
    drain(series)(_.isClosed) { one =>
      one.foreachNew((bucket, count) => merged.getOrElseUpdate(one.key, new BucketCounts).add(bucket, count))
    }
    merged.iterator.map { case (key, counts) => RecordedSeries(key, counts.flat) }.toArray
  }

  def takeBadRecords(): Array[BadRecordsSkipped] =
    badRecords.keySet.asScala.toArray.flatMap(run => Option(badRecords.remove(run)))

  def takeReads(): Array[ReadProgress] = {
    val reads = mutable.ArrayBuffer.empty[ReadProgress]
    drain(sources)(_.isClosed)(reads ++= _.take())
    reads.toArray
  }

  def takeWrites(): Array[RowsWritten] = {
    val writes = mutable.ArrayBuffer.empty[RowsWritten]
    drain(sinks)(_.isClosed)(writes ++= _.take())
    writes.groupMapReduce(_.run)(_.rows)(_ + _).map { case (run, rows) => RowsWritten(run, rows) }.toArray
  }

  private def drain[T](open: JSet[T])(isClosed: T => Boolean)(use: T => Unit): Unit = open.asScala.foreach { one =>
    // Checked first, so everything that the task recorded before it closed is taken.
    val last = isClosed(one)
    use(one)
    if (last) {
      open.remove(one)
    }
  }
}

/** Sums of counts by bucket. */
private[metrics] final class BucketCounts extends Serializable {
  private val counts = mutable.LongMap.empty[Long]

  def add(bucket: Int, count: Long): Unit = counts.update(bucket, counts.getOrElse(bucket, 0L) + count)

  def addAll(flat: Array[Long]): Unit = flat.grouped(2).foreach(pair => add(pair(0).toInt, pair(1)))

  def isEmpty: Boolean = counts.isEmpty

  def total: Long = counts.values.sum

  def toMap: Map[Int, Long] = counts.iterator.map { case (bucket, count) => bucket.toInt -> count }.toMap

  /** Bucket, count, bucket, count and so on. */
  def flat: Array[Long] = counts.iterator.flatMap { case (bucket, count) => Iterator(bucket, count) }.toArray
}
