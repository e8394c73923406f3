package org.apache.spark.sql.tailrace.metrics

import scala.collection.mutable
import scala.util.Try

import org.json4s.JsonAST.JValue
import org.json4s.JsonDSL._
import org.json4s.jackson.JsonMethods.{compact, parse, render}

import org.apache.spark.SparkContext
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream
import org.apache.spark.sql.streaming.StreamingQueryListener._
import org.apache.spark.sql.tailrace.internals.kafka.{KafkaPartition, KafkaStream}
import org.apache.spark.sql.tailrace.plan.StageShape

/**
 * On the driver: what has come from the executors and from Spark's streaming queries since somebody last asked.
 *
 * Everything is merged on arrival, so that nothing is lost and little is kept when nobody asks for hours. What the
 * figures mean over time is for Python to say.
 */
object LiveFigures {
  private val MostEvents = 1000
  private val KeptEpochs = 3

  private val series = mutable.HashMap.empty[SeriesKey, BucketCounts]
  private val reads = mutable.LinkedHashMap.empty[(String, Long, String, Int), ReadNews]
  private val written = mutable.HashMap.empty[String, Long]
  private val health = mutable.HashMap.empty[String, (HealthNews, BucketCounts)]
  private val events = mutable.Queue.empty[JValue]
  private val shapes = mutable.HashMap.empty[String, Seq[StageShape]]
  private val lag = new LagWatch

  /** A new application begins. */
  def reset(): Unit = {
    lag.stop()
    synchronized {
      Seq(series, reads, written, health, shapes).foreach(_.clear())
      events.clear()
    }
  }

  /** From an executor. */
  def received(report: Report): Unit = synchronized {
    report.series.foreach(news => series.getOrElseUpdate(news.key, new BucketCounts).addAll(news.counts))
    report.reads.foreach { news =>
      val key = (news.run, news.epoch, news.topic, news.partition)
      // Of epochs long past only the number of rows is of interest.
      val old = reads.remove(key.copy(_2 = news.epoch - KeptEpochs))
      val before = reads.get(key).orElse(old).fold(0L)(_.rows)
      reads(key) = news.copy(rows = before + news.rows)
    }
    report.writes.foreach(news => written(news.run) = written.getOrElse(news.run, 0L) + news.rows)
    report.leftOut.foreach { news =>
      add(("event" -> "left out") ~ ("run" -> news.run) ~ ("records" -> news.records) ~ ("error" -> news.error))
    }
    val (before, hiccups) = health.getOrElse(report.executor, (null, new BucketCounts))
    hiccups.addAll(report.health.hiccups)
    val pauses = Option(before).fold(Array.empty[Long])(_.pauses) ++ report.health.pauses
    health(report.executor) = (report.health.copy(pauses = pauses.takeRight(MostEvents)), hiccups)
  }

  /** An epoch of a real-time run is about to be planned. Told only if it differs from the one before. */
  def planned(run: String, epochMs: Option[Long], stages: Seq[StageShape]): Unit = synchronized {
    if (!shapes.get(run).contains(stages)) {
      shapes(run) = stages
      add(("event" -> "planned") ~ ("run" -> run) ~ ("epoch_ms" -> epochMs) ~ ("stages" -> stages.map(json)))
    }
  }

  /** An epoch is about to read these partitions, in the query's own thread. */
  def reading(context: SparkContext, stream: MicroBatchStream, partitions: Seq[KafkaPartition]): Unit =
    Option(context.getLocalProperty(TaskIdentity.RunKey)).foreach { run =>
      // Nothing of what only watches may fail the query.
      Try(KafkaStream.clientParams(stream).foreach { params =>
        lag.watch(run, stream.toString, params, partitions.map(_.topicPartition).toSet)
      })
      synchronized {
        add(
          ("event" -> "reading") ~ ("run" -> run) ~ ("partitions" -> partitions.map { one =>
            ("topic" -> one.topic) ~ ("partition" -> one.partition) ~ ("from" -> one.fromOffset)
          }))
      }
    }

  /** A run that has been planned, and not ended. */
  private[metrics] def isRealTime(run: String): Boolean = synchronized(shapes.contains(run))

  /** The first epochs of a run are short, or they are over. */
  def warming(run: String, epoch: Long, isWarming: Boolean): Unit = synchronized {
    add(("event" -> "warming") ~ ("run" -> run) ~ ("epoch" -> epoch) ~ ("warming" -> isWarming))
  }

  /** An epoch's job has been submitted. */
  private[metrics] def launched(run: String, epoch: Long, atMs: Long): Unit = synchronized {
    add(("event" -> "launched") ~ ("run" -> run) ~ ("epoch" -> epoch) ~ ("at_ms" -> atMs))
  }

  /** All tasks of an epoch have ended. */
  private[metrics] def finished(run: String, epoch: Long, atMs: Long): Unit = synchronized {
    add(("event" -> "finished") ~ ("run" -> run) ~ ("epoch" -> epoch) ~ ("at_ms" -> atMs))
  }

  def started(event: QueryStartedEvent): Unit = synchronized {
    add(
      ("event" -> "started") ~ ("run" -> event.runId.toString) ~ ("id" -> event.id.toString) ~
        ("name" -> Option(event.name)) ~ ("at" -> event.timestamp))
  }

  def progressed(event: QueryProgressEvent): Unit = synchronized {
    add(("event" -> "progress") ~ ("run" -> event.progress.runId.toString) ~ ("progress" -> parse(event.progress.json)))
  }

  def terminated(event: QueryTerminatedEvent): Unit = {
    lag.forget(event.runId.toString)
    synchronized {
      shapes.remove(event.runId.toString)
      add(("event" -> "terminated") ~ ("run" -> event.runId.toString) ~ ("error" -> event.exception))
    }
  }

  /** Everything since the last call, as JSON. */
  def take(): String = {
    val newest = lag.newest()
    synchronized {
      val taken: JValue =
        ("series" -> series.toSeq.map { case (key, counts) =>
          ("run" -> key.run) ~ ("figure" -> key.figure) ~ ("stage" -> key.stage) ~ ("topic" -> key.topic) ~
            ("partition" -> key.partition) ~ ("counts" -> counts.flat.toSeq)
        }) ~
          ("reads" -> reads.values.toSeq.map(json)) ~
          ("written" -> written.toSeq.map { case (run, rows) => ("run" -> run) ~ ("rows" -> rows) }) ~
          ("executors" -> health.toSeq.map { case (executor, (news, hiccups)) => json(executor, news, hiccups) }) ~
          ("newest" -> newest.map { case (run, topic, partition, offset) =>
            ("run" -> run) ~ ("topic" -> topic) ~ ("partition" -> partition) ~ ("offset" -> offset)
          }) ~
          ("events" -> events.toSeq)
      Seq(series, reads, written, health).foreach(_.clear())
      events.clear()
      compact(render(taken))
    }
  }

  private def add(event: JValue): Unit = {
    events.enqueue(event)
    if (events.length > MostEvents) {
      events.dequeue()
    }
  }

  private def json(stage: StageShape): JValue =
    ("stage" -> stage.stage) ~ ("inputs" -> stage.inputs) ~ ("sources" -> stage.sources) ~
      ("operators" -> stage.operators) ~ ("tasks" -> stage.tasks) ~ ("sink" -> stage.sink)

  private def json(news: ReadNews): JValue =
    ("run" -> news.run) ~ ("epoch" -> news.epoch) ~ ("topic" -> news.topic) ~ ("partition" -> news.partition) ~
      ("began_us" -> news.beganAt) ~ ("ended_us" -> news.endedAt) ~ ("offset" -> news.offset) ~ ("rows" -> news.rows)

  private def json(executor: String, news: HealthNews, hiccups: BucketCounts): JValue =
    ("id" -> executor) ~ ("cpu_load" -> news.systemCpuLoad) ~ ("process_cpu_load" -> news.processCpuLoad) ~
      ("heap_used_bytes" -> news.heapUsed) ~ ("heap_max_bytes" -> news.heapMax) ~
      ("gc_pauses_us" -> news.pauses.toSeq) ~ ("hiccups" -> hiccups.flat.toSeq)
}
