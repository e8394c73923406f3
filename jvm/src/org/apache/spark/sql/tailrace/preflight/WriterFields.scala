package org.apache.spark.sql.tailrace.preflight

import java.util.Locale

import scala.jdk.CollectionConverters._
import scala.util.Try

import org.apache.spark.sql.classic.{DataStreamWriter, Dataset, SparkSession}
import org.apache.spark.sql.connector.catalog.{SupportsWrite, TableCapability, TableProvider}
import org.apache.spark.sql.execution.datasources.{DataSource, FileFormat}
import org.apache.spark.sql.execution.datasources.v2.{DataSourceV2Utils, FileDataSourceV2}
import org.apache.spark.sql.streaming.{OutputMode, Trigger}
import org.apache.spark.sql.tailrace.internals.StreamWriterFields
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import tailrace.support.{Sinks, Support}

/** The settings of a writer that has not been started. */
private[preflight] final class WriterFields(writer: DataStreamWriter[_]) {
  val dataset: Dataset[_] = StreamWriterFields.datasetOf(writer)
  val format: String = StreamWriterFields.formatOf(writer)
  val outputMode: OutputMode = StreamWriterFields.outputModeOf(writer)
  val trigger: Trigger = StreamWriterFields.triggerOf(writer)
  val options: Map[String, String] = StreamWriterFields.optionsOf(writer)

  private def session: SparkSession = dataset.sparkSession

  /** The registry's entry for the sink. The sink itself is not created, because that may write. */
  def sink: Support = format.toLowerCase(Locale.ROOT) match {
    case "foreach" => if (StreamWriterFields.isPythonForeach(writer)) Sinks.PythonForeach else Sinks.JvmForeach
    case "foreachbatch" => Sinks.ForeachBatch
    case "memory" => Sinks.Memory
    case _ => Try(tableClass).toOption.flatten.fold(Sinks.of("", format))(Sinks.of(_, format))
  }

  private def tableClass: Option[String] = {
    val provider = DataSource.lookupDataSource(format, session.sessionState.conf)
    if (classOf[FileDataSourceV2].isAssignableFrom(provider) || classOf[FileFormat].isAssignableFrom(provider)) {
      Some(Sinks.Files.className)
    } else if (classOf[TableProvider].isAssignableFrom(provider)) {
      val made = StreamWriterFields.makeProvider(provider)
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
}
