package tailrace.support

/** The support registry's sinks. */
object Sinks {
  private val Group = "Sinks"
  private val Streaming = "org.apache.spark.sql.execution.streaming"

  private def yes(name: String, className: String, note: String = "") = Support(Group, name, className, Supported(note))

  private def no(name: String, className: String, reason: String, remedy: String) =
    Support(Group, name, className, Unsupported(reason, remedy))

  val PythonForeach: Support = yes(
    "foreach (Python)",
    "org.apache.spark.sql.tailrace.operators.python.PythonForeachTable",
    "a function, or an object with open, process and close.")

  val JvmForeach: Support = yes("foreach (JVM)", s"$Streaming.sources.ForeachWriterTable")

  val ForeachBatch: Support = no(
    "foreachBatch",
    s"$Streaming.sources.ForeachBatchSink",
    "an epoch is not a batch: its rows leave one by one.",
    "use foreach, or write to Kafka.")

  val Memory: Support = no(
    "memory",
    s"$Streaming.sources.MemorySink",
    "it collects a whole batch in the driver.",
    "write to Kafka or, while developing, to the console.")

  val Files: Support = no(
    "files",
    s"$Streaming.sinks.FileStreamSink",
    "a file becomes visible only when it is closed, at the end of the epoch.",
    "write to Kafka and let a micro-batch query write the files.")

  val all: Seq[Support] = Seq(
    yes("kafka", "org.apache.spark.sql.kafka010.KafkaSourceProvider$KafkaTable").overlapping,
    yes(
      "tailrace-kafka",
      "org.apache.spark.sql.tailrace.sink.kafka.TailraceKafkaTable",
      "Kafka, each row once, also after a failure.").overlapping,
    yes(
      "tailrace-postgresql",
      "org.apache.spark.sql.tailrace.sink.postgresql.TailracePostgresqlTable",
      "PostgreSQL, appended or upserted, each row once, also after a failure."),
    yes(
      "tailrace-redis",
      "org.apache.spark.sql.tailrace.sink.redis.TailraceRedisTable",
      "Redis hashes, strings, sorted sets and streams, each row once, also after a failure."),
    PythonForeach,
    JvmForeach,
    yes("console", s"$Streaming.ConsoleTable$$", "prints at epoch boundaries.").overlapping,
    yes("memory for continuous queries", s"$Streaming.sources.ContinuousMemorySink").copy(group = ""),
    yes("results of a test", "org.apache.spark.sql.tailrace.testing.CollectedRows").copy(group = ""),
    ForeachBatch,
    Memory,
    Files)

  private val byClass = all.map(row => row.className -> row).toMap

  def of(className: String, name: String): Support = byClass.getOrElse(
    className,
    no(
      name,
      className,
      "it is not known to take rows one by one.",
      "write to kafka or, while developing, to the console.")
      .copy(group = ""))
}
