package org.apache.spark.sql.tailrace.internals.kafka

import java.io.File
import java.nio.file.{Files, Paths}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.tailrace.internals.names.ByName

/**
 * Runs Apache Kafka in this JVM for as long as its owner lives. The owner holds the other end of
 * standard input and never writes to it: when the owner ends, however it ends, the pipe closes, the
 * data folder is removed and the JVM halts. No process is left, even after a SIGKILL of the owner.
 *
 * Arguments: the server's properties file, the cluster id ("-" to continue with the existing data),
 * the folder to remove ("-" to keep running without an owner), and a file with the users of a new secured broker, one
 * a line ("-" for none). Kafka's classes are called by name because the plugin is compiled only against Spark's jars.
 */
object OwnedBroker extends ByName {
  private val format = method("kafka.tools.StorageTool", "execute", "[Ljava.lang.String;", "java.io.PrintStream")
  private val start = method("kafka.Kafka", "main", "[Ljava.lang.String;")

  def main(arguments: Array[String]): Unit = {
    val (properties, clusterId, folder, users) = (arguments(0), arguments(1), arguments(2), arguments(3))
    if (folder != "-") haltWithOwner(new File(folder))
    if (clusterId != "-") {
      // One word with the option: a random id may begin with a dash.
      val own = Array("format", s"--cluster-id=$clusterId", "--config", properties)
      format.callStatic[AnyRef](own ++ scram(users), System.out)
    }
    start.callStatic[AnyRef](Array(properties))
  }

  private def scram(users: String): Seq[String] =
    if (users == "-") Nil
    else Files.readAllLines(Paths.get(users)).asScala.toSeq.flatMap(user => Seq("--add-scram", user))

  private def haltWithOwner(folder: File): Unit = {
    val watch = new Thread(
      () => {
        while (System.in.read() >= 0) {}
        // Kafka still runs and may write a file between two looks.
        for (_ <- 1 to 20 if folder.exists()) delete(folder)
        Runtime.getRuntime.halt(0)
      },
      "tailrace-owner-watch")
    watch.setDaemon(true)
    watch.start()
  }

  private def delete(file: File): Unit = {
    if (!Files.isSymbolicLink(file.toPath)) Option(file.listFiles).toSeq.flatten.foreach(delete)
    file.delete()
  }
}
