package org.apache.spark.sql.tailrace.operators.python

import java.io.{DataOutputStream, File}
import java.nio.ByteBuffer

import scala.jdk.CollectionConverters._

import org.apache.spark.{SparkEnv, TaskContext}
import org.apache.spark.api.python.{BasePythonRunner, PythonWorker}
import org.apache.spark.api.python.PythonFunction.PythonAccumulator
import org.apache.spark.internal.config.EXECUTOR_CORES
import org.apache.spark.internal.config.Python.{PYTHON_DAEMON_MODULE, PYTHON_WORKER_REUSE}
import org.apache.spark.resource.ResourceProfile
import org.apache.spark.resource.ResourceProfile.{
  EXECUTOR_CORES_LOCAL_PROPERTY, MAX_TASKS_PER_EXECUTOR_LOCAL_PROPERTY, PYSPARK_MEMORY_LOCAL_PROPERTY
}
import org.apache.spark.util.DirectByteBufferOutputStream

/** What a worker should run, and in which kind of worker. */
private[python] trait WorkerCommand {
  def lease(context: TaskContext): WorkerLease

  /** The first message to a worker: the task, the broadcasts, the functions. */
  def encode(worker: PythonWorker, partition: Int, context: TaskContext): ByteBuffer

  def accumulators: PythonAccumulator
}

/** What one [[WorkerExchange]] needs: the command, and the protocol in which rows and results travel. */
private[python] final case class WorkerConnection(command: WorkerCommand, protocol: WorkerProtocol)

/** One of Spark's runners, used only to encode its command; a [[WorkerExchange]] talks to the worker. */
private[python] trait RealTimeRunner[IN, OUT] extends BasePythonRunner[IN, OUT] with WorkerCommand {

  override def lease(context: TaskContext): WorkerLease = new WorkerLease(pythonExec, environment(context))

  override def encode(worker: PythonWorker, partition: Int, context: TaskContext): ByteBuffer = {
    val bytes = new DirectByteBufferOutputStream
    val writer = newWriter(SparkEnv.get, worker, Iterator.empty, partition, context)
    writer.open(new DataOutputStream(bytes))
    writer.exception.foreach(failure => throw failure)
    bytes.toByteBuffer
  }

  override def accumulators: PythonAccumulator = accumulator

  /** The variables that Spark's own runner sets in private code, and the path to Tailrace's modules. */
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
