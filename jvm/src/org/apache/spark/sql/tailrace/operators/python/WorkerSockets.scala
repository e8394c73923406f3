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
 * The folder of this JVM for its Unix sockets, which only its user can enter. It is deleted when the JVM ends, and not
 * with a session: Spark keeps the settings of a JVM's first session for as long as the JVM lives.
 *
 * Spark puts them into the temporary folder. There only the umask decides who may connect, and any client that may
 * connect can make Python unpickle, and so run, what it sends.
 */
object WorkerSockets extends Logging {
  /** Tells executors that the folder in their settings is the driver's, and that each makes its own. */
  val PrivateKey = "privateSockets"

  private val Prefix = "tailrace-sockets-"
  private val LockName = "lock"
  // Spark's own limit: the path of a socket has room for 104 bytes.
  private val LongestPath = 61
  private val StaleAfterMs = TimeUnit.MINUTES.toMillis(1)

  /** @param lock held as long as the JVM lives: it tells others that the folder is in use */
  private final case class Folder(path: Path, lock: FileChannel)
  private var folder: Option[Folder] = None

  /** Names the folder in the settings. False without such sockets, or if the user named a folder. */
  def open(conf: SparkConf): Boolean =
    if (!conf.get(PYTHON_UNIX_DOMAIN_SOCKET_ENABLED) || conf.contains(PYTHON_UNIX_DOMAIN_SOCKET_DIR)) false
    else {
      try {
        conf.set(PYTHON_UNIX_DOMAIN_SOCKET_DIR, ofThisJvm().toString)
        true
      } catch {
        case NonFatal(failure) =>
          // Connections over TCP need a secret.
          logWarning("No private folder for the sockets of Python workers: they are connected over TCP.", failure)
          conf.set(PYTHON_UNIX_DOMAIN_SOCKET_ENABLED, false)
          false
      }
    }

  /** In an executor, whose settings come from the driver. One that is part of the driver uses the driver's folder. */
  def openInExecutor(context: PluginContext): Unit =
    if (context.executorID() != SparkContext.DRIVER_IDENTIFIER) {
      open(context.conf().remove(PYTHON_UNIX_DOMAIN_SOCKET_DIR))
    }

  private def ofThisJvm(): Path = synchronized {
    folder = folder.filter(own => Files.isDirectory(own.path)).orElse(Some(makeFolder()))
    folder.get.path
  }

  private def makeFolder(): Folder = {
    val temporary = new File(System.getProperty("java.io.tmpdir"))
    // The name ends with a number of up to 20 digits.
    val isShort = temporary.getPath.length + 1 + Prefix.length + 20 <= LongestPath
    val parent = if (isShort) temporary else new File("/tmp")
    deleteStale(parent)
    val onlyOwner = PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------"))
    val made = Files.createTempDirectory(parent.toPath, Prefix, onlyOwner)
    ShutdownHookManager.registerShutdownDeleteDir(made.toFile)
    val channel = FileChannel.open(made.resolve(LockName), CREATE, WRITE)
    channel.lock()
    Folder(made, channel)
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
