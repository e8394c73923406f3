package org.apache.spark.sql.tailrace.operators.python

import java.io.File
import java.util.concurrent.atomic.AtomicBoolean

import org.apache.spark.SparkEnv
import org.apache.spark.api.python.{LocalPythonWorkerHandle, PythonWorker, PythonWorkerHandle}
import org.apache.spark.internal.config.Python.{PYTHON_USE_DAEMON, PYTHON_WORKER_REUSE}

/** A Python worker from Spark's pool, leased for one task. The first [[release]] or [[kill]] ends the lease. */
private[python] final class WorkerLease(pythonExec: String, environment: Map[String, String]) {
  import WorkerLease._

  private val env = SparkEnv.get
  private val held = new AtomicBoolean(true)
  // Without a daemon Spark runs this module itself; the daemon takes the worker's main from its second argument.
  private val workerModule = if (env.conf.get(PYTHON_USE_DAEMON)) "pyspark.worker" else "tailrace_worker.single"
  private val (leased, handle): (PythonWorker, Option[PythonWorkerHandle]) =
    env.createPythonWorker(pythonExec, workerModule, DaemonModule, environment, env.conf.get(PYTHON_USE_DAEMON))

  def worker: PythonWorker = leased

  def isHeld: Boolean = held.get()

  def release(): Unit = if (held.getAndSet(false)) {
    if (env.conf.get(PYTHON_WORKER_REUSE)) {
      env.releasePythonWorker(pythonExec, workerModule, DaemonModule, environment, leased)
    } else {
      leased.stop()
    }
  }

  /**
   * Kills the process before Spark closes its socket: a worker that finds its socket closed prints a traceback about a
   * broken pipe.
   */
  def kill(): Unit = if (held.getAndSet(false)) {
    handle.collect { case local: LocalPythonWorkerHandle => ProcessHandle.of(local.pid) }
      .foreach(_.ifPresent(process => process.destroyForcibly()))
    env.destroyPythonWorker(pythonExec, workerModule, DaemonModule, environment, leased)
  }

  /** What Python's fault handler wrote when the process died, if it was enabled. */
  def crashReport: Option[String] = handle.flatMap(_.terminationDiagnostics())
}

private[python] object WorkerLease {
  private val DaemonModule = "tailrace_worker.daemon"

  /** The plugin's jar on this executor; it contains the modules above. */
  private[python] lazy val jar: String =
    new File(classOf[WorkerLease].getProtectionDomain.getCodeSource.getLocation.toURI).getPath
}
