package org.apache.spark.sql.tailrace.sink.kafka

import org.apache.kafka.common.header.Header
import org.apache.kafka.common.header.internals.RecordHeader

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, Cast, Expression, Literal, UnsafeProjection}
import org.apache.spark.sql.catalyst.types.DataTypeUtils
import org.apache.spark.sql.types._

import tailrace.TailraceException

/** An output record. Its partition is null unless the row names one. */
final class OutputRecord(
    val topic: String,
    val key: Array[Byte],
    val value: Array[Byte],
    val partition: Integer,
    val headers: Array[Header]) {
  def withHeaders(others: Array[Header]): OutputRecord = new OutputRecord(topic, key, value, partition, others)
}

/** Reads the columns of Spark's Kafka sink: value, and optionally key, topic, partition and headers. */
final class RecordColumns(schema: StructType, topic: Option[String]) {
  import RecordColumns._

  private val columns = DataTypeUtils.toAttributes(schema)
  private val projection = UnsafeProjection.create(
    Seq(
      topic.map(Literal(_)).getOrElse(column("topic").get),
      column("key").fold[Expression](Literal(null, BinaryType))(Cast(_, BinaryType)),
      Cast(column("value").get, BinaryType),
      column("headers").getOrElse(Literal(null, HeadersType)),
      column("partition").getOrElse(Literal(null, IntegerType))),
    columns)

  def of(row: InternalRow): OutputRecord = {
    val found = projection(row)
    if (found.isNullAt(0)) {
      throw bad("the topic of a row is null", "fill the column topic, or set the option topic for all rows.")
    }
    new OutputRecord(
      found.getUTF8String(0).toString,
      found.getBinary(1),
      found.getBinary(2),
      if (found.isNullAt(4)) null else found.getInt(4),
      if (found.isNullAt(3)) NoHeaders else headersOf(found))
  }

  private def headersOf(row: InternalRow): Array[Header] = {
    val headers = row.getArray(3)
    Array.tabulate(headers.numElements()) { index =>
      val header = headers.getStruct(index, 2)
      new RecordHeader(header.getUTF8String(0).toString, header.getBinary(1))
    }
  }

  private def column(name: String): Option[Attribute] = columns.find(_.name == name)
}

object RecordColumns {
  private val HeadersType = ArrayType(new StructType().add("key", StringType).add("value", BinaryType))
  private val NoHeaders = Array.empty[Header]
  private val Known: Seq[(String, Seq[DataType])] = Seq(
    "topic" -> Seq(StringType),
    "key" -> Seq(StringType, BinaryType),
    "value" -> Seq(StringType, BinaryType),
    "headers" -> Seq(HeadersType),
    "partition" -> Seq(IntegerType))
  val Names: Set[String] = Known.map(_._1).toSet

  /** Called on the driver before the first epoch. */
  def check(schema: StructType, topic: Option[String]): Unit = {
    val names = schema.fieldNames
    if (!names.contains("value")) {
      throw bad("there is no column 'value'", "select what to write as select(….alias(\"value\")).")
    }
    if (topic.isEmpty && !names.contains("topic")) {
      throw bad("the output topic is unknown", "set the option topic, or add a column topic.")
    }
    for {
      (name, types) <- Known
      field <- schema.fields.find(_.name == name)
      if !types.exists(DataTypeUtils.sameType(_, field.dataType))
    } {
      val wanted = types.map(_.simpleString).mkString(" or ")
      throw bad(
        s"the column '$name' has type ${field.dataType.simpleString} and must be $wanted",
        s"cast it to $wanted.")
    }
  }

  private def bad(problem: String, fix: String) = new TailraceException("TAILRACE_BAD_SINK_COLUMNS", s"$problem.", fix)
}
