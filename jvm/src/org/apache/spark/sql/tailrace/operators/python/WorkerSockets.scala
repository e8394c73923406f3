package org.apache.spark.sql.tailrace.operators.python

import java.io.File
import java.nio.channels.{FileChannel, OverlappingFileLockException}
import java.nio.file.{Files, Path}
import java.nio.file.StandardOpenOption.{CREATE, WRITE}
import java.nio.file.attribute.PosixFilePermissions
import java.util.concurrent.TimeUnit

import scala.util.{Try, Using}
import scala.util.control.NonFatal

import org.apache.spark.{SparkConf, SparkContext}
import org.apache.spark.api.plugin.PluginContext
import org.apache.spark.internal.Logging
import org.apache.spark.internal.config.Python.{PYTHON_UNIX_DOMAIN_SOCKET_DIR, PYTHON_UNIX_DOMAIN_SOCKET_ENABLED}
import org.apache.spark.util.{ShutdownHookManager, Utils}

/**
 * The folder of one JVM for its Unix sockets, which only its user can enter.
 *
 * Spark puts them into the temporary folder. There the umask alone decides who may connect, and whoever may can have
 * Python unpickle, and thereby run, what he sends.
 */
final class WorkerSockets private (folder: File, lock: FileChannel) {
  def delete(): Unit = {
    ShutdownHookManager.removeShutdownDeleteDir(folder)
    Try(lock.close())
    Try(Utils.deleteRecursively(folder))
  }
}

object WorkerSockets extends Logging {
  /** Tells executors that the folder in their settings is the driver's, and that each makes its own. */
  val PrivateKey = "privateSockets"

  private val Prefix = "tailrace-sockets-"
  private val LockName = "lock"
  // Spark's own limit: the path of a socket has room for 104 bytes.
  private val LongestPath = 61
  private val StaleAfterMs = TimeUnit.MINUTES.toMillis(1)

  /** Makes the folder and names it in the settings. None without such sockets, or if the user named a folder. */
  def open(conf: SparkConf): Option[WorkerSockets] =
    if (!conf.get(PYTHON_UNIX_DOMAIN_SOCKET_ENABLED) || conf.contains(PYTHON_UNIX_DOMAIN_SOCKET_DIR)) None
    else {
      try Some(made(conf))
      catch {
        case NonFatal(failure) =>
          // Connections over TCP need a secret.
          logWarning("No private folder for the sockets of Python workers: they are connected over TCP.", failure)
          conf.set(PYTHON_UNIX_DOMAIN_SOCKET_ENABLED, false)
          None
      }
    }

  /** In an executor, whose settings come from the driver. One that is part of the driver uses the driver's folder. */
  def openInExecutor(context: PluginContext): Option[WorkerSockets] =
    if (context.executorID() == SparkContext.DRIVER_IDENTIFIER) None
    else open(context.conf().remove(PYTHON_UNIX_DOMAIN_SOCKET_DIR))

  private def made(conf: SparkConf): WorkerSockets = {
    val temporary = new File(System.getProperty("java.io.tmpdir"))
    // The name ends with a number of up to 20 digits.
    val isShort = temporary.getPath.length + 1 + Prefix.length + 20 <= LongestPath
    val parent = if (isShort) temporary else new File("/tmp")
    deleteStale(parent)
    val onlyOwner = PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------"))
    val folder = Files.createTempDirectory(parent.toPath, Prefix, onlyOwner)
    ShutdownHookManager.registerShutdownDeleteDir(folder.toFile)
    val lock = FileChannel.open(folder.resolve(LockName), CREATE, WRITE)
    lock.lock()
    conf.set(PYTHON_UNIX_DOMAIN_SOCKET_DIR, folder.toString)
    new WorkerSockets(folder.toFile, lock)
  }

  /** Deletes what JVMs that were killed have left. A lock ends with its process, in whatever container that ran. */
  private def deleteStale(parent: File): Unit = {
    val before = System.currentTimeMillis() - StaleAfterMs
    val found = Option(parent.listFiles((_, name) => name.startsWith(Prefix))).getOrElse(Array.empty[File])
    found.filter(folder => folder.lastModified() < before && isAbandoned(folder.toPath)).foreach { folder =>
      Try(Utils.deleteRecursively(folder))
    }
  }

  private def isAbandoned(folder: Path): Boolean =
    try Using.resource(FileChannel.open(folder.resolve(LockName), WRITE))(channel => channel.tryLock() != null)
    catch {
      // Another user's, or this JVM's own.
      case _: OverlappingFileLockException => false
      case NonFatal(_) => false
    }
}
