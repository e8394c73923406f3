package tailrace

/** The three versions that must agree: the Python package's, the jar's, and Spark's. */
object Handshake {
  def check(clientVersion: Option[String], sparkVersion: String): Unit = {
    clientVersion match {
      case None =>
        throw new TailraceException(
          "TAILRACE_NOT_CONFIGURED",
          s"the Tailrace plugin ${BuildInfo.version} was loaded without tailrace.configure.",
          "build the session with tailrace.configure(SparkSession.builder) instead of naming the plugin by hand.")
      case Some(version) if version != BuildInfo.version =>
        throw new TailraceException(
          "TAILRACE_VERSION_MISMATCH",
          s"the Python package is tailrace $version but the loaded plugin jar is ${BuildInfo.version}.",
          "remove the other Tailrace jar from spark.jars and from Spark's jars folder, or install the same version " +
            "everywhere.")
      case _ =>
    }
    if (sparkVersion != BuildInfo.sparkVersion) {
      throw new TailraceException(
        "TAILRACE_SPARK_VERSION_MISMATCH",
        s"this is Spark $sparkVersion but Tailrace ${BuildInfo.version} was built for Spark ${BuildInfo.sparkVersion}.",
        s"pip install pyspark==${BuildInfo.sparkVersion}, and use the same Spark on the cluster.")
    }
  }
}
