package org.apache.spark.sql.tailrace.preflight

import java.util.Locale

import scala.jdk.CollectionConverters._
import scala.util.Try

import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap
import org.apache.spark.sql.classic.{DataStreamWriter, Dataset, SparkSession}
import org.apache.spark.sql.connector.catalog.{SupportsWrite, TableCapability, TableProvider}
import org.apache.spark.sql.execution.datasources.{DataSource, FileFormat}
import org.apache.spark.sql.execution.datasources.v2.{DataSourceV2Utils, FileDataSourceV2}
import org.apache.spark.sql.streaming.{OutputMode, Trigger}
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import tailrace.support.{Sinks, Support}

/** What was set on a writer that has not been started. */
private[preflight] final class WriterFields(writer: DataStreamWriter[_]) {
  val dataset: Dataset[_] = field[Dataset[_]]("ds")
  val format: String = field[String]("source")
  val outputMode: OutputMode = field[OutputMode]("outputMode")
  val trigger: Trigger = field[Trigger]("trigger")
  val options: Map[String, String] = field[CaseInsensitiveMap[String]]("extraOptions").originalMap

  private def session: SparkSession = dataset.sparkSession

  /** What the registry says of the sink; the sink itself is not made, as that may write. */
  def sink: Support = format.toLowerCase(Locale.ROOT) match {
    case "foreach" => if (isPython) Sinks.PythonForeach else Sinks.JvmForeach
    case "foreachbatch" => Sinks.ForeachBatch
    case "memory" => Sinks.Memory
    case _ => Try(tableClass).toOption.flatten.fold(Sinks.of("", format))(Sinks.of(_, format))
  }

  private def isPython: Boolean = {
    val writer = field[Object]("foreachWriter")
    writer != null && writer.getClass.getSimpleName == "PythonForeachWriter"
  }

  private def tableClass: Option[String] = {
    val provider = DataSource.lookupDataSource(format, session.sessionState.conf)
    if (classOf[FileDataSourceV2].isAssignableFrom(provider) || classOf[FileFormat].isAssignableFrom(provider)) {
      Some(Sinks.Files.className)
    } else if (classOf[TableProvider].isAssignableFrom(provider)) {
      val made = provider.getConstructor().newInstance().asInstanceOf[TableProvider]
      val settings = new CaseInsensitiveStringMap(options.asJava)
      val schema = Option.when(made.supportsExternalMetadata())(dataset.schema)
      Some(DataSourceV2Utils.getTableFromProvider(made, settings, schema)).collect {
        case table: SupportsWrite if table.capabilities.contains(TableCapability.STREAMING_WRITE) =>
          table.getClass.getName
      }
    } else {
      None
    }
  }

  private def field[T](name: String): T = WriterFields.field(writer, name)
}

private[preflight] object WriterFields {
  def triggerOf(writer: DataStreamWriter[_]): Trigger = field(writer, "trigger")

  private def field[T](writer: DataStreamWriter[_], name: String): T = {
    val found = classOf[DataStreamWriter[_]].getDeclaredFields.find(_.getName.split('$').last == name)
    val opened = found.getOrElse(throw new NoSuchFieldException(s"DataStreamWriter.$name"))
    opened.setAccessible(true)
    opened.get(writer).asInstanceOf[T]
  }
}
