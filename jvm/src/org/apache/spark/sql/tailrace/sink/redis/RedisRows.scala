package org.apache.spark.sql.tailrace.sink.redis

import java.io.{ByteArrayOutputStream, StringWriter}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{GenericInternalRow, XXH64}
import org.apache.spark.sql.catalyst.json.{JacksonGenerator, JSONOptions}
import org.apache.spark.sql.catalyst.util.{DateFormatter, DateTimeUtils, TimestampFormatter}
import org.apache.spark.sql.tailrace.internals.RedisValues.bytesOf
import org.apache.spark.sql.tailrace.sink.store.{RowReader, StoreRow}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.Platform

/**
 * A row for Redis.
 *
 * @param arguments of the command that writes it, after the key; see [[RedisScripts]]
 */
private[redis] final class RedisRow(
    val key: Array[Byte],
    val arguments: Array[Array[Byte]],
    override val keyHash: Long,
    override val problem: Option[String])
    extends StoreRow {
  override lazy val contentHash: Long = arguments.foldLeft(keyHash)((hash, part) => RedisRow.hash(part, hash))
  override val bytes: Int = {
    var sum = RedisRow.ObjectBytes + key.length
    arguments.foreach(argument => sum += argument.length + 16)
    sum
  }
}

private[redis] object RedisRow {
  private val ObjectBytes = 128

  def hash(bytes: Array[Byte], seed: Long): Long =
    XXH64.hashUnsafeBytes(bytes, Platform.BYTE_ARRAY_OFFSET, bytes.length, seed)
}

/** Reads Spark's rows for one structure. */
private[redis] final class RedisRowReader(options: RedisOptions, schema: StructType, timeZone: String)
    extends RowReader[RedisRow] {
  import RedisRowReader._

  private val values = new ColumnTexts(timeZone)
  private val texts: IndexedSeq[AsBytes] =
    schema.fields.toIndexedSeq.zipWithIndex.map { case (field, at) => values.of(field.dataType, at) }
  private val keyParts: Array[Either[Array[Byte], Int]] =
    options.key.parts.map(_.left.map(bytesOf).map(schema.fieldIndex)).toArray
  private val keyColumns: Array[Int] = keyParts.collect { case Right(at) => at }
  private val fields: Array[(Array[Byte], Int)] = RedisColumns.fields(options, schema).map { name =>
    (bytesOf(name), schema.fieldIndex(name))
  }.toArray
  // By how many fields are set: the number of their names and values.
  private val counts: Array[Array[Byte]] = Array.tabulate(fields.length + 1)(set => bytesOf((2 * set).toString))
  private val json = values.json(schema)

  override def read(row: InternalRow): RedisRow = {
    val nullKey = keyColumns.indexWhere(row.isNullAt)
    if (nullKey >= 0) invalid(s"the column ${schema(keyColumns(nullKey)).name} of its key is null")
    else {
      val key = keyOf(row)
      options.structure match {
        case Structure.Hash => hashOf(key, row)
        case Structure.Text => textOf(key, row)
        case Structure.SortedSet => memberOf(key, row)
        case Structure.Stream => entryOf(key, row)
      }
    }
  }

  private def keyOf(row: InternalRow): Array[Byte] = {
    val key = new ByteArrayOutputStream
    keyParts.foreach {
      case Left(literal) => key.writeBytes(literal)
      case Right(at) => key.writeBytes(texts(at)(row))
    }
    key.toByteArray
  }

  /** The fields that are set, after their number; then those that are null, which are deleted. */
  private def hashOf(key: Array[Byte], row: InternalRow): RedisRow = {
    val nulls = fields.count(field => row.isNullAt(field._2))
    val set = 2 * (fields.length - nulls)
    val arguments = new Array[Array[Byte]](1 + set + nulls)
    arguments(0) = counts(set / 2)
    var (nextSet, nextNull) = (1, 1 + set)
    fields.foreach { case (name, at) =>
      if (row.isNullAt(at)) {
        arguments(nextNull) = name
        nextNull += 1
      } else {
        arguments(nextSet) = name
        arguments(nextSet + 1) = texts(at)(row)
        nextSet += 2
      }
    }
    made(key, arguments)
  }

  private def textOf(key: Array[Byte], row: InternalRow): RedisRow = options.value match {
    case None => made(key, Array(json(row)))
    case Some(_) =>
      val at = fields.head._2
      if (row.isNullAt(at)) invalid(s"the column ${schema(at).name} is null") else made(key, Array(texts(at)(row)))
  }

  private def memberOf(key: Array[Byte], row: InternalRow): RedisRow = {
    val (member, score) = (fields(0)._2, fields(1)._2)
    val missing = Seq(member, score).find(row.isNullAt)
    if (missing.nonEmpty) invalid(s"the column ${schema(missing.get).name} is null")
    else {
      val name = texts(member)(row)
      new RedisRow(key, Array(texts(score)(row), name), RedisRow.hash(name, seedOf(key)), None)
    }
  }

  private def entryOf(key: Array[Byte], row: InternalRow): RedisRow = {
    val set = fields.filterNot { case (_, at) => row.isNullAt(at) }
    if (set.isEmpty) invalid("all its columns are null")
    else made(key, set.flatMap { case (name, at) => Array(name, texts(at)(row)) })
  }

  private def made(key: Array[Byte], arguments: Array[Array[Byte]]) =
    new RedisRow(key, arguments, seedOf(key), None)

  private def seedOf(key: Array[Byte]): Long = RedisRow.hash(key, Seed)

  private def invalid(problem: String) = new RedisRow(Array.empty, Array.empty, Seed, Some(problem))
}

private[redis] object RedisRowReader {
  type AsBytes = InternalRow => Array[Byte]
  private val Seed = 42L
}

/** Which columns of a query go where. */
private[redis] object RedisColumns {
  /** The columns that are written, besides the key. A string without a `value` is made of all. */
  def fields(options: RedisOptions, schema: StructType): Seq[String] = options.structure match {
    case Structure.SortedSet => Seq(options.member.get, options.score.get)
    case Structure.Text => options.value.toSeq
    case _ => schema.fieldNames.toSeq.filterNot(options.key.columns.toSet)
  }
}

/** Values as texts: as Spark writes them in JSON, without quotes. */
private[redis] final class ColumnTexts(timeZone: String) {
  import RedisRowReader.AsBytes

  private val zone = java.time.ZoneId.of(timeZone)
  private val timestamps = TimestampFormatter(ColumnTexts.TimestampFormat, zone, isParsing = false)
  private val localTimes =
    TimestampFormatter(ColumnTexts.LocalFormat, zone, isParsing = false, forTimestampNTZ = true)
  private val dates = DateFormatter()
  private val jsonOptions = new JSONOptions(
    Map("timestampFormat" -> ColumnTexts.TimestampFormat, "timestampNTZFormat" -> ColumnTexts.LocalFormat),
    timeZone,
    "")

  def of(from: DataType, at: Int): AsBytes = from match {
    case _: StringType => row => row.getUTF8String(at).getBytes
    case BinaryType => row => row.getBinary(at)
    case BooleanType => row => bytesOf(row.getBoolean(at).toString)
    case ByteType => row => bytesOf(row.getByte(at).toString)
    case ShortType => row => bytesOf(row.getShort(at).toString)
    case IntegerType => row => bytesOf(row.getInt(at).toString)
    case LongType => row => bytesOf(row.getLong(at).toString)
    case FloatType => row => bytesOf(row.getFloat(at).toString)
    case DoubleType => row => bytesOf(row.getDouble(at).toString)
    case decimal: DecimalType =>
      row => bytesOf(row.getDecimal(at, decimal.precision, decimal.scale).toJavaBigDecimal.toPlainString)
    case DateType => row => bytesOf(dates.format(row.getInt(at)))
    case TimestampType => row => bytesOf(timestamps.format(row.getLong(at)))
    case TimestampNTZType =>
      row => bytesOf(localTimes.format(DateTimeUtils.microsToLocalDateTime(row.getLong(at))))
    // A row of one column, whose value is what stands behind its name.
    case nested =>
      val write = json(StructType(Seq(StructField("v", nested))))
      row => {
        val one = new GenericInternalRow(Array[Any](row.get(at, nested)))
        val text = write(one)
        text.slice("{\"v\":".length, text.length - 1)
      }
  }

  def json(schema: StructType): AsBytes = row => {
    val text = new StringWriter
    val generator = new JacksonGenerator(schema, text, jsonOptions)
    generator.write(row)
    generator.close()
    bytesOf(text.toString)
  }
}

private[redis] object ColumnTexts {
  val TimestampFormat = "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"
  val LocalFormat = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"
}
