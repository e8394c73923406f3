package org.apache.spark.sql.tailrace.preflight

import java.io.IOException
import java.nio.file.{Files, Paths}
import java.util.{HashMap => JHashMap, Properties}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.tailrace.conf.TailraceConf
import org.apache.spark.sql.tailrace.preflight.KafkaPartitions.Overridden

import tailrace.TailraceException

/** How the check reaches brokers: as the query does, or with the properties of a file (`--kafka-config`). */
private[preflight] object CheckAccess {
  def of(session: SparkSession): Overridden = {
    val own = properties(session)
    params => {
      val all = new JHashMap[String, Object](params)
      own.foreach { case (key, value) => all.put(key, value) }
      all
    }
  }

  /** Empty without such a file. */
  def properties(session: SparkSession): Map[String, String] =
    TailraceConf.CheckKafkaConfig.of(session.sessionState.conf).fold(Map.empty[String, String])(read)

  private def read(path: String): Map[String, String] = {
    val found = new Properties
    try {
      val reader = Files.newBufferedReader(Paths.get(path))
      try found.load(reader)
      finally reader.close()
    } catch {
      case failure: IOException => throw new TailraceException(
          "TAILRACE_BAD_KAFKA_CONFIG",
          s"$path cannot be read: $failure",
          "name a file with client properties.")
    }
    found.asScala.toMap
  }
}
