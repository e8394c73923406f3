package org.apache.spark.sql.tailrace.metrics

import java.lang.management.ManagementFactory
import java.util.concurrent.ConcurrentLinkedQueue
import java.util.concurrent.TimeUnit.{MILLISECONDS, NANOSECONDS}
import javax.management.{NotificationEmitter, NotificationListener}
import javax.management.openmbean.CompositeData

import scala.jdk.CollectionConverters._

import com.sun.management.{GarbageCollectionNotificationInfo, OperatingSystemMXBean}

/** Watches what delays every thread of this JVM: its garbage collector, and a machine with too little CPU. */
private[metrics] final class JvmHealth {
  import JvmHealth._

  private val pauses = new ConcurrentLinkedQueue[java.lang.Long]
  private val hiccups = new Series(SeriesKey("", "hiccup", 0, "", 0))
  private val system = ManagementFactory.getPlatformMXBean(classOf[OperatingSystemMXBean])
  @volatile private var stopped = false

  private val onCollection: NotificationListener = (notification, _) =>
    if (notification.getType == GarbageCollectionNotificationInfo.GARBAGE_COLLECTION_NOTIFICATION) {
      val collection = GarbageCollectionNotificationInfo.from(notification.getUserData.asInstanceOf[CompositeData])
      pauses.add(MILLISECONDS.toMicros(collection.getGcInfo.getDuration))
    }

  // A thread that only sleeps: whatever delays its wake-up delays the tasks' threads too.
  private val sleeper = new Thread("tailrace-hiccups") {
    override def run(): Unit =
      try while (!stopped) {
          val begun = System.nanoTime()
          Thread.sleep(SleepMs)
          hiccups.record(NANOSECONDS.toMicros(System.nanoTime() - begun) - MILLISECONDS.toMicros(SleepMs), 1)
          Sampling.beginTick()
        }
      catch {
        case _: InterruptedException =>
      }
  }

  def start(): Unit = {
    collectors.foreach(_.addNotificationListener(onCollection, null, null))
    sleeper.setDaemon(true)
    sleeper.start()
  }

  def stop(): Unit = {
    stopped = true
    sleeper.interrupt()
    collectors.foreach(_.removeNotificationListener(onCollection))
  }

  def take(): JvmReport = {
    val heap = ManagementFactory.getMemoryMXBean.getHeapMemoryUsage
    val since = Iterator.continually(pauses.poll()).takeWhile(_ != null).map(_.longValue).toArray
    val late = new BucketCounts
    hiccups.foreachNew((bucket, count) => late.add(bucket, count))
    JvmReport(system.getCpuLoad, system.getProcessCpuLoad, heap.getUsed, heap.getMax, since, late.flat)
  }
}

private object JvmHealth {
  private val SleepMs = 20L

  /** The collectors that stop the threads; the others work concurrently. */
  private def collectors: Seq[NotificationEmitter] = ManagementFactory.getGarbageCollectorMXBeans.asScala.toSeq
    .filterNot(bean => Seq("Concurrent", "Cycles").exists(bean.getName.contains))
    .collect { case emitter: NotificationEmitter => emitter }
}
