package org.apache.spark.sql.tailrace.operators.python

import java.util.concurrent.{TimeoutException, TimeUnit}
import java.util.concurrent.atomic.AtomicLong

import scala.concurrent.Await
import scala.concurrent.duration.Duration

import org.apache.spark.{SparkContext, TaskContext}
import org.apache.spark.api.python.PythonFunction

/** Starts Python workers before the first task needs one, because a daemon and its workers take a second to start. */
object WorkerWarmup {
  private val LongestWaitMs = 5000L
  private val SettledAfterMs = 250L

  /** In an executor: when a task last leased a worker. */
  private val lastLeasedNs = new AtomicLong

  /** Returns the number of workers started: one per slot, or fewer if that takes longer than `timeoutMs`. */
  def start(context: SparkContext, function: PythonFunction, slots: Int, timeoutMs: Long): Int = {
    val started = context.longAccumulator
    val leaseOne = (_: Iterator[Int]) => {
      val worker = new ForeachRunner(function, None).lease(TaskContext.get())
      started.add(1)
      val leasedNs = System.nanoTime()
      lastLeasedNs.set(leasedNs)
      // The task in the next slot would lease this worker again if it were released too early.
      def waited(sinceNs: Long, ms: Long): Boolean = System.nanoTime() - sinceNs > TimeUnit.MILLISECONDS.toNanos(ms)
      while (!waited(lastLeasedNs.get(), SettledAfterMs) && !waited(leasedNs, LongestWaitMs)) Thread.sleep(5)
      worker.release()
    }
    val job =
      context.submitJob(context.parallelize(0 until slots, slots), leaseOne, 0 until slots, (_: Int, _: Unit) => (), ())
    try Await.ready(job, Duration(timeoutMs, TimeUnit.MILLISECONDS))
    catch { case _: TimeoutException => job.cancel() }
    started.value.toInt
  }
}
