package org.apache.spark.sql.tailrace.internals

import java.sql.{Connection, Driver}
import java.util.Properties

import org.apache.spark.util.Utils

import tailrace.TailraceException

/** PostgreSQL's JDBC driver. By name: users bring it, and only those who write to PostgreSQL. */
private[tailrace] object PostgresqlDriver {
  private val ClassName = "org.postgresql.Driver"

  def connect(url: String, properties: Properties): Connection = driver().connect(url, properties)

  private def driver(): Driver =
    try Utils.classForName[Driver](ClassName).getConstructor().newInstance()
    catch {
      case _: ClassNotFoundException =>
        throw new TailraceException(
          "TAILRACE_NO_POSTGRESQL_DRIVER",
          "PostgreSQL's JDBC driver is not on Spark's class path.",
          "tailrace.configure(builder, postgresql_driver=True), or name a jar of org.postgresql:postgresql in " +
            "spark.jars.")
    }
}
