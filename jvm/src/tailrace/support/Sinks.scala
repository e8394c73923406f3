package tailrace.support

/** The support registry's sinks. */
object Sinks {
  private val Streaming = "org.apache.spark.sql.execution.streaming"

  /** The same table as for a JVM writer; only the writer inside tells them apart. */
  val PythonForeach: Support = Support(
    "foreach with a Python function",
    "org.apache.spark.sql.execution.python.streaming.PythonForeachWriter",
    Unsupported(
      "Spark collects rows for Python in batches that grow, so a row waits for seconds and an error for the epoch's end.",
      "write to Kafka, and read that topic from Python."))

  val all: Seq[Support] = Seq(
    Support("kafka", "org.apache.spark.sql.kafka010.KafkaSourceProvider$KafkaTable", Supported),
    Support("foreach (JVM)", s"$Streaming.sources.ForeachWriterTable", Supported),
    Support("console", s"$Streaming.ConsoleTable$$", Supported),
    Support("memory for continuous queries", s"$Streaming.sources.ContinuousMemorySink", Supported),
    PythonForeach,
    Support(
      "foreachBatch",
      s"$Streaming.sources.ForeachBatchSink",
      Unsupported("an epoch is no batch: its rows leave one by one.", "write to Kafka.")),
    Support(
      "memory",
      s"$Streaming.sources.MemorySink",
      Unsupported("it collects a whole batch in the driver.", "write to Kafka or, while developing, to the console.")),
    Support(
      "files",
      s"$Streaming.sinks.FileStreamSink",
      Unsupported(
        "a file becomes visible only when it is closed, at the epoch's end.",
        "write to Kafka and let a micro-batch query write the files.")))

  private val byClass = all.map(row => row.className -> row).toMap

  def of(className: String, name: String): Support = byClass.getOrElse(
    className,
    Support(
      name,
      className,
      Unsupported("it is not known to take rows one by one.", "write to kafka or, while developing, to the console.")))
}
