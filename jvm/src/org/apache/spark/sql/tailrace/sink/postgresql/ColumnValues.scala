package org.apache.spark.sql.tailrace.sink.postgresql

import java.time.{Instant, LocalDate, LocalDateTime, ZoneId, ZoneOffset}
import java.time.format.{DateTimeFormatter, DateTimeFormatterBuilder, SignStyle}
import java.time.temporal.ChronoField

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters
import org.apache.spark.sql.catalyst.util.{ArrayData, DateTimeUtils}
import org.apache.spark.sql.types._

/**
 * Reads one column of Spark's rows for PostgreSQL. The values of a batch are sent as one array.
 *
 * @param arrayType PostgreSQL's type of the array's elements
 * @param newArray  of the class that the JDBC driver expects for it
 */
private[postgresql] final class ColumnValues(
    ordinal: Int,
    val arrayType: String,
    newArray: Int => Array[AnyRef],
    read: SpecializedGetters => AnyRef) {

  def of(row: InternalRow): AnyRef = if (row.isNullAt(ordinal)) null else read(row)

  def array(length: Int): Array[AnyRef] = newArray(length)
}

private[postgresql] object ColumnValues {
  private val Texts = Set("text", "varchar", "bpchar", "name", "citext")
  private val Integers = Set("int2", "int4", "int8")
  private val Floats = Set("float4", "float8")
  private val Numeric = "numeric"
  // What has a type of its own in Spark is not written as a text: the user would not see that a cast is missing.
  private val NotFromText =
    Integers ++ Floats ++ Set(Numeric, "bool", "bytea", "date", "timestamp", "timestamptz", "money", "oid")

  /** True if a column of the query can be written to one of the table. */
  def fits(from: DataType, to: TargetColumn): Boolean = fits(from, to.kind, to.category)

  private def fits(from: DataType, kind: String, category: String): Boolean = from match {
    case BooleanType => kind == "bool"
    case ByteType | ShortType | IntegerType | LongType => Integers(kind) || Floats(kind) || kind == Numeric
    case FloatType | DoubleType => Floats(kind) || kind == Numeric
    case _: DecimalType => kind == Numeric
    case _: StringType => !NotFromText(kind) && category != "A" && category != "C"
    case BinaryType => kind == "bytea"
    case DateType => kind == "date"
    case TimestampType => kind == "timestamptz" || kind == "timestamp"
    case TimestampNTZType => kind == "timestamp"
    // An array of enums or of texts: its elements are read as their type by the cast.
    case ArrayType(element, _) => kind.startsWith("_") && (element match {
        // PostgreSQL has one type for arrays of any dimension.
        case _: ArrayType => fits(element, kind, category)
        case one => fits(one, kind.drop(1), "")
      })
    case _ => false
  }

  /** The cast from what is sent to the column's type, if PostgreSQL does not make it by itself. */
  def castTo(from: DataType, to: TargetColumn): Option[String] = from match {
    case _: StringType => Option.when(!Texts(to.kind))(to.typeName)
    case _: DecimalType | DateType | TimestampType | TimestampNTZType | _: ArrayType => Some(to.typeName)
    case _ => None
  }

  /** @param zone in which a column without a time zone shows the time */
  def apply(ordinal: Int, from: DataType, to: TargetColumn, zone: ZoneId): ColumnValues = {
    def values(arrayType: String, newArray: Int => Array[_ <: AnyRef])(read: SpecializedGetters => AnyRef) =
      new ColumnValues(ordinal, arrayType, newArray.asInstanceOf[Int => Array[AnyRef]], read)
    from match {
      case BooleanType => values("bool", new Array[java.lang.Boolean](_))(row => Boolean.box(row.getBoolean(ordinal)))
      case ByteType => values("int2", new Array[java.lang.Short](_))(row => Short.box(row.getByte(ordinal).toShort))
      case ShortType => values("int2", new Array[java.lang.Short](_))(row => Short.box(row.getShort(ordinal)))
      case IntegerType => values("int4", new Array[Integer](_))(row => Int.box(row.getInt(ordinal)))
      case LongType => values("int8", new Array[java.lang.Long](_))(row => Long.box(row.getLong(ordinal)))
      case FloatType => values("float4", new Array[java.lang.Float](_))(row => Float.box(row.getFloat(ordinal)))
      case DoubleType => values("float8", new Array[java.lang.Double](_))(row => Double.box(row.getDouble(ordinal)))
      case BinaryType => values("bytea", new Array[Array[Byte]](_))(_.getBinary(ordinal))
      case other =>
        val text = textOf(other, isLocal = to.kind.endsWith("timestamp"), zone)
        values("text", new Array[String](_))(row => text(row, ordinal))
    }
  }

  private type AsText = (SpecializedGetters, Int) => String

  private def textOf(from: DataType, isLocal: Boolean, zone: ZoneId): AsText = from match {
    case _: StringType => (row, at) => row.getUTF8String(at).toString
    case decimal: DecimalType =>
      (row, at) => row.getDecimal(at, decimal.precision, decimal.scale).toJavaBigDecimal.toPlainString
    case DateType => (row, at) => Times.date(DateTimeUtils.daysToLocalDate(row.getInt(at)))
    case TimestampType if isLocal =>
      (row, at) => Times.local(LocalDateTime.ofInstant(DateTimeUtils.microsToInstant(row.getLong(at)), zone))
    case TimestampType => (row, at) => Times.instant(DateTimeUtils.microsToInstant(row.getLong(at)))
    case TimestampNTZType => (row, at) => Times.local(DateTimeUtils.microsToLocalDateTime(row.getLong(at)))
    case ArrayType(element, _) =>
      val text = arrayElement(element, isLocal, zone)
      (row, at) => arrayLiteral(row.getArray(at), text)
    case ByteType => (row, at) => row.getByte(at).toString
    case ShortType => (row, at) => row.getShort(at).toString
    case IntegerType => (row, at) => row.getInt(at).toString
    case LongType => (row, at) => row.getLong(at).toString
    case FloatType => (row, at) => row.getFloat(at).toString
    case DoubleType => (row, at) => row.getDouble(at).toString
    case BooleanType => (row, at) => row.getBoolean(at).toString
    case BinaryType => (row, at) => "\\x" + java.util.HexFormat.of().formatHex(row.getBinary(at))
    case other => throw new IllegalArgumentException(s"no column of PostgreSQL holds ${other.sql}")
  }

  private def arrayElement(element: DataType, isLocal: Boolean, zone: ZoneId): AsText = {
    val text = textOf(element, isLocal, zone)
    element match {
      case _: ArrayType => text
      case _ => (row, at) => quoted(text(row, at))
    }
  }

  private def arrayLiteral(array: ArrayData, element: AsText): String =
    Iterator.range(0, array.numElements()).map(at => if (array.isNullAt(at)) "NULL" else element(array, at))
      .mkString("{", ",", "}")

  private def quoted(element: String): String =
    "\"" + element.replace("\\", "\\\\").replace("\"", "\\\"") + "\""
}

/** Dates and times as PostgreSQL reads them, whatever its DateStyle. */
private[postgresql] object Times {
  private val Date = new DateTimeFormatterBuilder().appendValue(ChronoField.YEAR_OF_ERA, 4, 10, SignStyle.NEVER)
    .appendPattern("-MM-dd").toFormatter
  private val Time = DateTimeFormatter.ofPattern("HH:mm:ss.SSSSSS")

  def date(date: LocalDate): String = Date.format(date) + era(date)

  def local(at: LocalDateTime): String = s"${Date.format(at)} ${Time.format(at)}${era(at.toLocalDate)}"

  def instant(at: Instant): String = {
    val utc = LocalDateTime.ofInstant(at, ZoneOffset.UTC)
    s"${Date.format(utc)} ${Time.format(utc)}+00${era(utc.toLocalDate)}"
  }

  private def era(date: LocalDate): String = if (date.getYear < 1) " BC" else ""
}
