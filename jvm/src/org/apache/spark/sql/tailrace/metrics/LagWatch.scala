package org.apache.spark.sql.tailrace.metrics

import java.util.{HashMap => JHashMap, Map => JMap}
import java.util.concurrent.{ConcurrentHashMap, Future => JFuture, ScheduledFuture, TimeUnit}

import scala.jdk.CollectionConverters._
import scala.util.Try

import org.apache.spark.internal.Logging
import org.apache.spark.util.ThreadUtils

/**
 * Asks Kafka for the newest offsets of what real-time queries read, once a second; Spark itself does once an epoch.
 *
 * It has clients of its own and never waits for them: the query's own client is locked while it asks, and a broker that
 * does not answer would hold up the query's end.
 */
private[metrics] final class LagWatch extends Logging {
  import LagWatch._

  // By run and source.
  private val watched = new ConcurrentHashMap[(String, String), Asked]
  private var asking: Option[ScheduledFuture[_]] = None

  /** From now on the run reads these partitions; the parameters are those of its Kafka client. */
  def watch(run: String, source: String, params: JMap[String, Object], partitions: Set[Object]): Unit = {
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

  /** Run, topic, partition and offset, of what was answered since the last time. */
  def newest(): Seq[(String, String, Int, Long)] = watched.asScala.toSeq.flatMap { case ((run, _), source) =>
    source.answered().map { case (topic, partition, offset) => (run, topic, partition, offset) }
  }

  private def ask(): Unit = watched.values().asScala.foreach { source =>
    try source.ask()
    catch {
      // What is wrong with the broker is the query's to report; the lag is then not known.
      case failure: Exception => logDebug("The newest offsets are not known", failure)
    }
  }
}

private object LagWatch {
  private val PeriodMs = 1000L
  val GiveUpAfterMs = "3000"

  private lazy val timer = ThreadUtils.newDaemonSingleThreadScheduledExecutor("tailrace-lag")
}

/** The partitions of one source, and a client to ask for their newest offsets. By name: Kafka is the user's to bring. */
private final class Asked(params: JMap[String, Object], val topicPartitions: Set[Object]) {
  import scala.language.reflectiveCalls
  private type TopicPartition = { def topic(): String; def partition(): Int }
  private type Offset = { def offset(): Long }
  private type Answer = { def all(): JFuture[JMap[Object, Object]] }

  private val loader = Thread.currentThread().getContextClassLoader
  private val admin = Class.forName("org.apache.kafka.clients.admin.Admin", true, loader)
  private val spec = Class.forName("org.apache.kafka.clients.admin.OffsetSpec", true, loader)
  private val client: Object = {
    val own = new JHashMap[String, Object](params)
    own.put("default.api.timeout.ms", LagWatch.GiveUpAfterMs)
    own.put("request.timeout.ms", LagWatch.GiveUpAfterMs)
    own.put("client.id", "tailrace-lag")
    admin.getMethod("create", classOf[JMap[_, _]]).invoke(null, own)
  }
  private val request = topicPartitions.map(_ -> spec.getMethod("latest").invoke(null)).toMap.asJava
  private val listOffsets = admin.getMethod("listOffsets", classOf[JMap[_, _]])
  private var pending: Option[JFuture[JMap[Object, Object]]] = None
  private var answer: Seq[(String, Int, Long)] = Nil

  /** Takes the last question's answer, if it is there, and asks again. */
  def ask(): Unit = synchronized {
    if (pending.forall(_.isDone)) {
      answer = pending.flatMap(done => Try(done.get()).toOption).fold(answer)(read)
      pending = Some(listOffsets.invoke(client, request).asInstanceOf[Answer].all())
    }
  }

  def answered(): Seq[(String, Int, Long)] = synchronized {
    val told = answer
    answer = Nil
    told
  }

  def close(): Unit = synchronized {
    // At once: nobody waits for what is under way.
    admin.getMethod("close", classOf[java.time.Duration]).invoke(client, java.time.Duration.ZERO)
  }

  private def read(found: JMap[Object, Object]): Seq[(String, Int, Long)] = found.asScala.toSeq.map {
    case (place, info) =>
      val partition = place.asInstanceOf[TopicPartition]
      (partition.topic(), partition.partition(), info.asInstanceOf[Offset].offset())
  }
}
