package org.apache.spark.sql.tailrace.operators.state

import java.util.{List => JList}
import java.util.concurrent.TimeUnit.MILLISECONDS

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.encoders.{ExpressionEncoder, RowEncoder}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{LocalRelation, SerializeFromObject, TransformWithState}
import org.apache.spark.sql.catalyst.types.DataTypeUtils
import org.apache.spark.sql.catalyst.util.IntervalUtils
import org.apache.spark.sql.classic.{DataFrame, Dataset}
import org.apache.spark.sql.streaming.{OutputMode, TimeMode}
import org.apache.spark.sql.types.{DataType, MapType, ObjectType, StructType}
import org.apache.spark.unsafe.types.UTF8String

import tailrace.TailraceException

/**
 * `tailrace.drop_duplicates`: Spark's `transformWithState` with [[FirstOfEachKey]]. Rows and keys stay in Spark's
 * internal format. Objects of the API cost more and do not preserve every value (a string that is not valid UTF-8
 * changes).
 */
object DropDuplicates {
  private val Code = "TAILRACE_BAD_DEDUPLICATION"

  def apply(rows: DataFrame, columns: JList[String], ttl: String): DataFrame = {
    val input = rows.queryExecution.analyzed
    val keys = keysOf(rows, columns.asScala.toSeq)
    val ttlMs = milliseconds(ttl)
    if (!rows.isStreaming) {
      return rows.dropDuplicates(columns.asScala.toSeq)
    }
    val keyEncoder = internalEncoder(DataTypeUtils.fromAttributes(keys))
    val first = TransformWithState(
      keyDeserializer = CreateStruct(keys),
      valueDeserializer = CreateStruct(input.output),
      groupingAttributes = keys,
      dataAttributes = input.output,
      statefulProcessor = new FirstOfEachKey(ttlMs),
      timeMode = TimeMode.ProcessingTime(),
      outputMode = OutputMode.Update(),
      keyEncoder = keyEncoder,
      outputObjAttr = AttributeReference("row", DataTypeUtils.fromAttributes(input.output), nullable = false)(),
      child = input,
      // Unused: there is no initial state.
      initialStateGroupingAttrs = keys,
      initialStateDataAttrs = input.output,
      initialStateDeserializer = CreateStruct(keys),
      initialState = LocalRelation(keyEncoder.schema))
    val columnsOut = input.output.zipWithIndex.map { case (column, ordinal) =>
      Alias(GetStructField(first.outputObjAttr, ordinal), column.name)()
    }
    Dataset.ofRows(rows.sparkSession, SerializeFromObject(columnsOut, first))
  }

  /** As in `dropDuplicates`, a name stands for all columns of that name. */
  private def keysOf(rows: DataFrame, names: Seq[String]): Seq[Attribute] = {
    val analyzed = rows.queryExecution.analyzed
    val sameName = rows.sparkSession.sessionState.conf.resolver
    if (names.isEmpty) {
      throw bad(
        "the list of columns is empty",
        "name the columns that identify a row: drop_duplicates(rows, [\"id\"], ttl=…).")
    }
    names.distinct.flatMap { name =>
      val found = analyzed.output.filter(column => sameName(column.name, name))
      if (found.isEmpty) {
        throw bad(s"there is no column '$name'", s"choose from these: ${rows.columns.mkString(", ")}.")
      }
      found.filter(column => hasMap(column.dataType)).foreach { column =>
        throw bad(
          s"the column '${column.name}' is or contains a map, and maps cannot be compared",
          "name other columns, or a field of it.")
      }
      found
    }.distinct
  }

  private def hasMap(dataType: DataType): Boolean = dataType.existsRecursively(_.isInstanceOf[MapType])

  private def milliseconds(text: String): Long = {
    val interval =
      try IntervalUtils.stringToInterval(UTF8String.fromString(text))
      catch {
        case _: IllegalArgumentException =>
          throw bad(s"ttl is '$text', which is not a duration", "write it like this: ttl=\"10 minutes\".")
      }
    if (interval.months != 0) {
      throw bad(s"ttl is '$text', but months differ in length", "give it in days or smaller units: ttl=\"30 days\".")
    }
    val inMs = IntervalUtils.getDuration(interval, MILLISECONDS)
    if (inMs <= 0) {
      throw bad(
        s"ttl is '$text', so every key would be forgotten at once",
        "give at least a millisecond: ttl=\"10 minutes\".")
    }
    inMs
  }

  /** Encodes keys that are internal rows. Only timers decode keys, and there are none. */
  private def internalEncoder(schema: StructType): ExpressionEncoder[Any] = {
    val key = BoundReference(0, schema, nullable = true)
    val fields = schema.zipWithIndex.flatMap { case (field, ordinal) =>
      Seq(Literal(field.name), GetStructField(key, ordinal))
    }
    val noDecoder = Literal.create(null, ObjectType(classOf[Row]))
    ExpressionEncoder(RowEncoder.encoderFor(schema), CreateNamedStruct(fields), noDecoder).asInstanceOf[
      ExpressionEncoder[
        Any]]
  }

  private def bad(problem: String, fix: String) = new TailraceException(Code, s"$problem.", fix)
}
