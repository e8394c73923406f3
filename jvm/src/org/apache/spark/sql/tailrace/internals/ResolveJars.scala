package org.apache.spark.sql.tailrace.internals

import java.io.PrintStream

import org.apache.spark.util.MavenUtils

/**
 * Resolves Maven coordinates with Spark's own Ivy, in a process of its own, so that the jars are at
 * hand before Spark's JVM starts. Arguments are `key=value`; prints a line `jar <path>` for each jar
 * on standard output, and what Ivy says on standard error.
 */
object ResolveJars {
  def main(arguments: Array[String]): Unit = {
    val options = arguments.map(_.split("=", 2)).collect { case Array(key, value) => key -> value }.toMap
    implicit val ivyLog: PrintStream = System.err
    val repositories = options.get("repositories")
    val ivyHome = options.get("ivy")
    val settings = options.get("ivySettings") match {
      case Some(file) => MavenUtils.loadIvySettings(file, repositories, ivyHome)
      case None => MavenUtils.buildIvySettings(repositories, ivyHome)
    }
    val withoutLocalCache = options.get("ivySettings") match {
      case Some(_) => None
      case None => Some(MavenUtils.buildIvySettings(repositories, ivyHome, useLocalM2AsCache = false))
    }
    val jars = MavenUtils.resolveMavenCoordinates(
      options("coordinates"),
      settings,
      withoutLocalCache,
      transitive = options("transitive").toBoolean)
    jars.foreach(jar => System.out.println(s"jar $jar"))
  }
}
