package org.apache.spark.sql.tailrace.metrics

import java.time.Instant

import scala.collection.mutable
import scala.util.Try

import org.apache.spark.SparkContext
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream
import org.apache.spark.sql.streaming.StreamingQueryListener._
import org.apache.spark.sql.tailrace.internals.kafka.{KafkaPartition, KafkaStream}
import org.apache.spark.sql.tailrace.plan.StageShape

import tailrace.contract.JsonEncoder

/**
 * On the driver: the figures of the executors and the events of Spark's streaming queries since the last message.
 *
 * Everything is merged on arrival, so nothing is lost and little is kept even if nobody asks for hours. Python computes
 * what the figures mean over time.
 */
object LiveFigures {
  private val MostEvents = 1000
  private val KeptEpochs = 3

  private val series = mutable.HashMap.empty[SeriesKey, BucketCounts]
  private val reads = mutable.LinkedHashMap.empty[(String, Long, String, Int), ReadProgress]
  private val written = mutable.HashMap.empty[String, Long]
  private val health = mutable.HashMap.empty[String, (JvmReport, BucketCounts)]
  private val events = mutable.Queue.empty[QueryEvent]
  private val shapes = mutable.HashMap.empty[String, Seq[StageShape]]
  private val lag = new LagWatch

  /** A new application begins. */
  def reset(): Unit = {
    lag.stop()
    EpochSlots.reset()
    synchronized {
      Seq(series, reads, written, health, shapes).foreach(_.clear())
      events.clear()
    }
  }

  /** Merges a report of an executor. */
  def received(report: Report): Unit = synchronized {
    report.series.foreach(one => series.getOrElseUpdate(one.key, new BucketCounts).addAll(one.counts))
    report.reads.foreach { read =>
      val key = (read.run, read.epoch, read.topic, read.partition)
      // Only the number of rows matters for epochs long past.
      val old = reads.remove(key.copy(_2 = read.epoch - KeptEpochs))
      val before = reads.get(key).orElse(old).fold(0L)(_.rows)
      reads(key) = read.copy(rows = before + read.rows)
    }
    report.writes.foreach(one => written(one.run) = written.getOrElse(one.run, 0L) + one.rows)
    report.badRecords.foreach(add)
    val (before, hiccups) = health.getOrElse(report.executor, (null, new BucketCounts))
    hiccups.addAll(report.health.hiccups)
    val pauses = Option(before).fold(Array.empty[Long])(_.pausesUs) ++ report.health.pausesUs
    health(report.executor) = (report.health.copy(pausesUs = pauses.takeRight(MostEvents)), hiccups)
  }

  /** An epoch of a real-time run is about to be planned. Reported only if it differs from the previous one. */
  def planned(run: String, epochMs: Option[Long], stages: Seq[StageShape], timed: Boolean): Unit = synchronized {
    if (!shapes.get(run).contains(stages)) {
      shapes(run) = stages
      add(QueryPlanned(run, epochMs, stages, timed))
    }
  }

  /** An epoch is about to read these partitions, in the query's own thread. */
  def reading(context: SparkContext, stream: MicroBatchStream, partitions: Seq[KafkaPartition]): Unit =
    Option(context.getLocalProperty(TaskIdentity.RunKey)).foreach { run =>
      // Monitoring must never fail the query.
      Try(KafkaStream.clientParams(stream).foreach { params =>
        lag.watch(run, stream.toString, params, partitions.map(_.topicPartition).toSet)
      })
      synchronized {
        add(ReadingStarted(run, partitions.map(one => PartitionStart(one.topic, one.partition, one.fromOffset))))
      }
    }

  /** True for a run that has been planned and has not ended. */
  private[metrics] def isRealTime(run: String): Boolean = synchronized(shapes.contains(run))

  /** The short epochs at the start of a run have begun, or are over. */
  def warming(run: String, epoch: Long, isWarming: Boolean): Unit = synchronized {
    add(WarmupChanged(run, epoch, isWarming))
  }

  /** An epoch has begun: while the one before was still running or, for this reason, only afterwards. */
  def boundary(run: String, epoch: Long, reason: Option[String]): Unit = synchronized {
    add(EpochBegun(run, epoch, reason))
  }

  /** An epoch's job has been submitted. */
  private[metrics] def launched(run: String, epoch: Long, atMs: Long): Unit = synchronized {
    add(EpochLaunched(run, epoch, atMs))
  }

  /** All tasks of an epoch have ended. */
  private[metrics] def finished(run: String, epoch: Long, atMs: Long): Unit = synchronized {
    add(EpochFinished(run, epoch, atMs))
  }

  /** A query may take long to plan its first epoch: whether it is a real-time query is known before. */
  def started(event: QueryStartedEvent, realTime: Boolean): Unit = synchronized {
    add(QueryStarted(event.runId.toString, event.id.toString, Option(event.name), millis(event.timestamp), realTime))
  }

  def progressed(event: QueryProgressEvent): Unit = synchronized {
    val progress = event.progress
    // Progress has been written when the trigger is done.
    val atMs = millis(progress.timestamp) + Option(progress.durationMs.get("triggerExecution")).fold(0L)(_.longValue)
    add(EpochCommitted(
      progress.runId.toString,
      progress.batchId,
      atMs,
      progress.stateOperators.toSeq.map { one =>
        StateOperator(one.operatorName, one.numRowsTotal, one.memoryUsedBytes, one.commitTimeMs.toDouble)
      }))
  }

  def terminated(event: QueryTerminatedEvent): Unit = {
    lag.forget(event.runId.toString)
    EpochSlots.ended(event.runId.toString)
    synchronized {
      shapes.remove(event.runId.toString)
      add(QueryTerminated(event.runId.toString, event.exception))
    }
  }

  /** Everything since the last call, as JSON. */
  def take(): String = JsonEncoder.encode(takeMessage())

  private def takeMessage(): LiveFiguresMessage = {
    val latest = lag.latest()
    synchronized {
      val message = LiveFiguresMessage(
        series.toSeq.map { case (key, counts) => SeriesUpdate(key, counts.toMap) },
        reads.values.toSeq,
        written.toSeq.map { case (run, rows) => RowsWritten(run, rows) },
        health.toSeq.map { case (executor, (report, hiccups)) => healthOf(executor, report, hiccups) },
        latest,
        events.toSeq)
      Seq(series, reads, written, health).foreach(_.clear())
      events.clear()
      message
    }
  }

  private def healthOf(executor: String, report: JvmReport, hiccups: BucketCounts): ExecutorHealth =
    ExecutorHealth(
      executor,
      report.systemCpuLoad,
      report.processCpuLoad,
      report.heapUsed,
      report.heapMax,
      report.pausesUs.toSeq,
      hiccups.toMap)

  private def add(event: QueryEvent): Unit = {
    events.enqueue(event)
    if (events.length > MostEvents) {
      events.dequeue()
    }
  }

  private def millis(timestamp: String): Long = Instant.parse(timestamp).toEpochMilli
}
