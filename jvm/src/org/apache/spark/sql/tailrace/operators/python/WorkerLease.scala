package org.apache.spark.sql.tailrace.operators.python

import java.io.{DataOutputStream, File}
import java.nio.ByteBuffer

import scala.jdk.CollectionConverters._

import org.apache.spark.{SparkEnv, TaskContext}
import org.apache.spark.api.python.{BasePythonRunner, LocalPythonWorkerHandle, PythonWorker, PythonWorkerHandle}
import org.apache.spark.api.python.PythonFunction.PythonAccumulator
import org.apache.spark.internal.config.EXECUTOR_CORES
import org.apache.spark.internal.config.Python.{PYTHON_DAEMON_MODULE, PYTHON_USE_DAEMON, PYTHON_WORKER_REUSE}
import org.apache.spark.resource.ResourceProfile
import org.apache.spark.resource.ResourceProfile.{EXECUTOR_CORES_LOCAL_PROPERTY, MAX_TASKS_PER_EXECUTOR_LOCAL_PROPERTY, PYSPARK_MEMORY_LOCAL_PROPERTY}
import org.apache.spark.util.DirectByteBufferOutputStream

/** A Python worker from Spark's pool, for one task; afterwards it goes back or is killed. */
private[python] final class WorkerLease(pythonExec: String, environment: Map[String, String]) {
  import WorkerLease._

  private val env = SparkEnv.get
  private val (hired, handle): (PythonWorker, Option[PythonWorkerHandle]) =
    env.createPythonWorker(pythonExec, WorkerModule, DaemonModule, environment, env.conf.get(PYTHON_USE_DAEMON))

  def worker: PythonWorker = hired

  def release(): Unit = {
    if (env.conf.get(PYTHON_WORKER_REUSE)) {
      env.releasePythonWorker(pythonExec, WorkerModule, DaemonModule, environment, hired)
    } else {
      hired.stop()
    }
  }

  /**
   * At once and for good. The process first: Spark closes the socket while its daemon is still about to kill, and a
   * worker that finds itself cut off prints a traceback about a broken pipe.
   */
  def kill(): Unit = {
    handle.collect { case local: LocalPythonWorkerHandle => ProcessHandle.of(local.pid) }
      .foreach(_.ifPresent(process => process.destroyForcibly()))
    env.destroyPythonWorker(pythonExec, WorkerModule, DaemonModule, environment, hired)
  }

  /** What Python's fault handler wrote when the process died, if it was switched on. */
  def lastWords: Option[String] = handle.flatMap(_.terminationDiagnostics())
}

private[python] object WorkerLease {
  private val DaemonModule = "tailrace_worker.daemon"

  // Without a daemon Spark runs this module itself; the daemon asks its second argument for the worker's main.
  private def WorkerModule: String =
    if (SparkEnv.get.conf.get(PYTHON_USE_DAEMON)) "pyspark.worker" else "tailrace_worker.single"

  /** The plugin's jar as this executor has it; it carries the modules named above. */
  private[python] lazy val jar: String =
    new File(classOf[WorkerLease].getProtectionDomain.getCodeSource.getLocation.toURI).getPath
}

/** Knows the functions that a worker is to call. */
private[python] trait Employer {
  def hire(context: TaskContext): WorkerLease

  /** The first message to a worker: the task, the broadcasts, the functions. */
  def instructions(worker: PythonWorker, partition: Int, context: TaskContext): ByteBuffer

  def accumulators: PythonAccumulator
}

/** A runner of Spark's, for what it knows of a kind of function; the talking is done by a [[WorkerExchange]]. */
private[python] trait RealTimeRunner[IN, OUT] extends BasePythonRunner[IN, OUT] with Employer {

  override def hire(context: TaskContext): WorkerLease = new WorkerLease(pythonExec, environment(context))

  override def instructions(worker: PythonWorker, partition: Int, context: TaskContext): ByteBuffer = {
    val bytes = new DirectByteBufferOutputStream
    val writer = newWriter(SparkEnv.get, worker, Iterator.empty, partition, context)
    writer.open(new DataOutputStream(bytes))
    writer.exception.foreach(failure => throw failure)
    bytes.toByteBuffer
  }

  override def accumulators: PythonAccumulator = accumulator

  /** As Spark's own runner sets it, which keeps this to itself; and where to find Tailrace's modules. */
  private def environment(context: TaskContext): Map[String, String] = {
    val conf = SparkEnv.get.conf
    val inherited = envVars.asScala.toMap
    val memory = Option(context.getLocalProperty(PYSPARK_MEMORY_LOCAL_PROPERTY)).map(_.toLong)
    val cores = Option(context.getLocalProperty(EXECUTOR_CORES_LOCAL_PROPERTY)).map(_.toInt)
    val slots = Option(context.getLocalProperty(MAX_TASKS_PER_EXECUTOR_LOCAL_PROPERTY)).map(_.toInt).getOrElse {
      ResourceProfile.numTasksBasedOnCores(BigDecimal(cores.getOrElse(conf.get(EXECUTOR_CORES))), context.cpuAmount())
    }
    def when(condition: Boolean, entry: => (String, String)): Option[(String, String)] = Option.when(condition)(entry)

    inherited ++ Seq(
      when(
        !conf.contains("spark.executorEnv.OMP_NUM_THREADS"),
        "OMP_NUM_THREADS" -> math.ceil(context.cpuAmount().toDouble).toInt.toString),
      when(conf.get(PYTHON_WORKER_REUSE), "SPARK_REUSE_WORKER" -> "1"),
      when(hideTraceback, "SPARK_HIDE_TRACEBACK" -> "1"),
      when(simplifiedTraceback, "SPARK_SIMPLIFIED_TRACEBACK" -> "1"),
      when(tracebackWithLocals, "SPARK_TRACEBACK_WITH_LOCALS" -> "1"),
      when(faultHandlerEnabled, "PYTHON_FAULTHANDLER_DIR" -> BasePythonRunner.faultHandlerLogDir.toString),
      when(
        tracebackDumpIntervalSeconds > 0,
        "PYTHON_TRACEBACK_DUMP_INTERVAL_SECONDS" -> tracebackDumpIntervalSeconds.toString),
      BasePythonRunner.getWorkerMemoryMb(memory, slots).map("PYSPARK_EXECUTOR_MEMORY_MB" -> _.toString),
      conf.get(PYTHON_DAEMON_MODULE).map("TAILRACE_DAEMON_MODULE" -> _)).flatten ++ Map(
      "PYTHONPATH" -> (WorkerLease.jar +: inherited.get("PYTHONPATH").toSeq).mkString(File.pathSeparator),
      "SPARK_LOCAL_DIRS" -> SparkEnv.get.blockManager.diskBlockManager.localDirs.map(_.getPath).mkString(","),
      "SPARK_AUTH_SOCKET_TIMEOUT" -> authSocketTimeout.toString,
      "SPARK_BUFFER_SIZE" -> bufferSize.toString,
      "SPARK_JOB_ARTIFACT_UUID" -> jobArtifactUUID.getOrElse("default"),
      "SPARK_PYTHON_RUNTIME" -> "PYTHON_WORKER")
  }
}
