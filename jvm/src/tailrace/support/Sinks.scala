package tailrace.support

/** The support registry's sinks. */
object Sinks {
  private val Group = "Sinks"
  private val Streaming = "org.apache.spark.sql.execution.streaming"

  val all: Seq[Support] = Seq(
    Support(Group, "kafka", "org.apache.spark.sql.kafka010.KafkaSourceProvider$KafkaTable", Supported("")),
    Support(
      Group,
      "foreach (Python)",
      "org.apache.spark.sql.tailrace.python.PythonForeachTable",
      Supported("a function, or an object with open, process and close.")),
    Support(Group, "foreach (JVM)", s"$Streaming.sources.ForeachWriterTable", Supported("")),
    Support(Group, "console", s"$Streaming.ConsoleTable$$", Supported("prints when an epoch ends.")),
    Support("", "memory for continuous queries", s"$Streaming.sources.ContinuousMemorySink", Supported("")),
    Support(
      Group,
      "foreachBatch",
      s"$Streaming.sources.ForeachBatchSink",
      Unsupported("an epoch is no batch: its rows leave one by one.", "use foreach, or write to Kafka.")),
    Support(
      Group,
      "memory",
      s"$Streaming.sources.MemorySink",
      Unsupported("it collects a whole batch in the driver.", "write to Kafka or, while developing, to the console.")),
    Support(
      Group,
      "files",
      s"$Streaming.sinks.FileStreamSink",
      Unsupported(
        "a file becomes visible only when it is closed, at the epoch's end.",
        "write to Kafka and let a micro-batch query write the files.")))

  private val byClass = all.map(row => row.className -> row).toMap

  def of(className: String, name: String): Support = byClass.getOrElse(
    className,
    Support(
      "",
      name,
      className,
      Unsupported("it is not known to take rows one by one.", "write to kafka or, while developing, to the console.")))
}
