package org.apache.spark.sql.tailrace.operators.python

import java.util.concurrent.{TimeoutException, TimeUnit}
import java.util.concurrent.atomic.AtomicLong

import scala.concurrent.Await
import scala.concurrent.duration.Duration

import org.apache.spark.{SparkContext, TaskContext}
import org.apache.spark.api.python.PythonFunction

/** Python workers that wait in their pools before the first task needs one: the daemon and its processes take a second. */
object WorkerWarmup {
  private val LongestWaitMs = 5000L
  private val SettledAfterMs = 250L

  /** In an executor: when a task last hired one. */
  private val lastHiredNs = new AtomicLong

  /** The number of workers that were hired, one for each slot; fewer if it takes longer than `timeoutMs`. */
  def start(context: SparkContext, function: PythonFunction, slots: Int, timeoutMs: Long): Int = {
    val started = context.longAccumulator
    val hire = (_: Iterator[Int]) => {
      val worker = new ForeachRunner(function, None).hire(TaskContext.get())
      started.add(1)
      val hiredNs = System.nanoTime()
      lastHiredNs.set(hiredNs)
      // Released too early, it would be hired again by the task in the next slot.
      def waited(sinceNs: Long, ms: Long): Boolean = System.nanoTime() - sinceNs > TimeUnit.MILLISECONDS.toNanos(ms)
      while (!waited(lastHiredNs.get(), SettledAfterMs) && !waited(hiredNs, LongestWaitMs)) Thread.sleep(5)
      worker.release()
    }
    val job =
      context.submitJob(context.parallelize(0 until slots, slots), hire, 0 until slots, (_: Int, _: Unit) => (), ())
    try Await.ready(job, Duration(timeoutMs, TimeUnit.MILLISECONDS))
    catch { case _: TimeoutException => job.cancel() }
    started.value.toInt
  }
}
