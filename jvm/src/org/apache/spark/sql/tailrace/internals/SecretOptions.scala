package org.apache.spark.sql.tailrace.internals

/** Options of sources and sinks whose values must not be printed. */
private[tailrace] object SecretOptions {
  private val Hidden = "*********(redacted)"

  /** By the name of an option; also the default of Spark's own `spark.redaction.regex` in a configured session. */
  private val Names =
    "(?i)secret|password|passwd|token|credential|jaas|access[._-]?key|api[._-]?key|keystore[.]key|ssl[.]key[.]".r

  /** The same options, with nothing in them that may not be printed. */
  def hidden(options: Map[String, String]): Map[String, String] = options.map { case (key, value) =>
    key -> (if (Names.findFirstIn(key).isDefined) Hidden else value)
  }
}
