package org.apache.spark.sql.tailrace.metrics

import java.util.{Map => JMap}
import java.util.concurrent.{ConcurrentHashMap, Future => JFuture, ScheduledFuture, TimeUnit}

import scala.jdk.CollectionConverters._
import scala.util.Try

import org.apache.spark.internal.Logging
import org.apache.spark.sql.tailrace.internals.kafka.{KafkaAdmin, KafkaPartition}
import org.apache.spark.util.ThreadUtils

/**
 * Asks Kafka once a second for the newest offsets of the partitions that real-time queries read. Spark itself asks once
 * per epoch.
 *
 * It has its own clients and never waits for them: the query's client is locked during a request, and a broker that
 * does not answer would delay the end of the query.
 */
private[metrics] final class LagWatch extends Logging {
  import LagWatch._

  // Keyed by run and source.
  private val watched = new ConcurrentHashMap[(String, String), Asked]
  private var asking: Option[ScheduledFuture[_]] = None

  /** The run reads these partitions from now on; the parameters are those of its Kafka client. */
  def watch(run: String, source: String, params: JMap[String, Object], partitions: Set[AnyRef]): Unit = {
    if (!Option(watched.get((run, source))).exists(_.topicPartitions == partitions)) {
      Option(watched.put((run, source), new Asked(params, partitions))).foreach(_.close())
    }
    synchronized {
      if (asking.isEmpty) {
        asking = Some(timer.scheduleWithFixedDelay(() => ask(), 0, PeriodMs, TimeUnit.MILLISECONDS))
      }
    }
  }

  def forget(run: String): Unit =
    watched.keySet().asScala.filter(_._1 == run).foreach(key => Option(watched.remove(key)).foreach(_.close()))

  def stop(): Unit = {
    watched.keySet().asScala.map(_._1).foreach(forget)
    synchronized {
      asking.foreach(_.cancel(false))
      asking = None
    }
  }

  /** The answers since the last call. */
  def latest(): Seq[LatestOffset] = watched.asScala.toSeq.flatMap { case ((run, _), source) =>
    source.answered().map { case (topic, partition, offset) => LatestOffset(run, topic, partition, offset) }
  }

  private def ask(): Unit = watched.values().asScala.foreach { source =>
    try source.ask()
    catch {
      // The query itself reports problems of the broker. Meanwhile the lag is unknown.
      case failure: Exception => logDebug("The newest offsets are unknown", failure)
    }
  }
}

private object LagWatch {
  private val PeriodMs = 1000L
  val GiveUpAfterMs = 3000L

  private lazy val timer = ThreadUtils.newDaemonSingleThreadScheduledExecutor("tailrace-lag")
}

/** The partitions of one source, and a client to ask for their newest offsets. */
private final class Asked(params: JMap[String, Object], val topicPartitions: Set[AnyRef]) {
  private val client = KafkaAdmin.open(KafkaAdmin.impatient(params, "tailrace-lag", LagWatch.GiveUpAfterMs))
  private var pending: Option[JFuture[JMap[AnyRef, AnyRef]]] = None
  private var answer: Seq[(String, Int, Long)] = Nil

  /** Takes the answer to the last request, if it has arrived, and sends the next request. */
  def ask(): Unit = synchronized {
    if (pending.forall(_.isDone)) {
      answer = pending.flatMap(done => Try(done.get()).toOption).fold(answer)(read)
      pending = Some(client.newestOffsets(topicPartitions))
    }
  }

  def answered(): Seq[(String, Int, Long)] = synchronized {
    val told = answer
    answer = Nil
    told
  }

  def close(): Unit = synchronized(client.close())

  private def read(found: JMap[AnyRef, AnyRef]): Seq[(String, Int, Long)] = found.asScala.toSeq.map { case (at, info) =>
    (KafkaPartition.topicOf(at), KafkaPartition.partitionOf(at), KafkaAdmin.offsetIn(info))
  }
}
