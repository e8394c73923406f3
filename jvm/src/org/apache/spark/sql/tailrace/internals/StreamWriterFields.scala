package org.apache.spark.sql.tailrace.internals

import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap
import org.apache.spark.sql.classic.{DataStreamWriter, Dataset}
import org.apache.spark.sql.connector.catalog.TableProvider
import org.apache.spark.sql.execution.python.streaming.PythonForeachWriter
import org.apache.spark.sql.streaming.{OutputMode, Trigger}
import org.apache.spark.sql.tailrace.internals.names.ByName

/** What was set on a `DataStreamWriter`. */
private[tailrace] object StreamWriterFields extends ByName {
  private val Writer = classOf[DataStreamWriter[_]].getName
  private val ds = field[Dataset[_]](Writer, "ds")
  private val source = field[String](Writer, "source")
  private val mode = field[OutputMode](Writer, "outputMode")
  private val trigger = field[Trigger](Writer, "trigger")
  private val extraOptions = field[CaseInsensitiveMap[String]](Writer, "extraOptions")
  private val foreachWriter = field[AnyRef](Writer, "foreachWriter")

  def datasetOf(writer: DataStreamWriter[_]): Dataset[_] = ds.of(writer)
  def formatOf(writer: DataStreamWriter[_]): String = source.of(writer)
  def outputModeOf(writer: DataStreamWriter[_]): OutputMode = mode.of(writer)
  def triggerOf(writer: DataStreamWriter[_]): Trigger = trigger.of(writer)
  def optionsOf(writer: DataStreamWriter[_]): Map[String, String] = extraOptions.of(writer).originalMap
  def isPythonForeach(writer: DataStreamWriter[_]): Boolean = foreachWriter.of(writer).isInstanceOf[PythonForeachWriter]

  /** Made as Spark makes one when the query starts. */
  def makeProvider(found: Class[_]): TableProvider = found.getConstructor().newInstance().asInstanceOf[TableProvider]
}
