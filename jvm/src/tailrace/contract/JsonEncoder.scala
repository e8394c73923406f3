package tailrace.contract

import java.io.StringWriter
import java.util.concurrent.ConcurrentHashMap

import com.fasterxml.jackson.core.{JsonFactory, JsonGenerator}

/** Base of case classes that are alternatives in a message. The field `type` of their JSON names the class. */
trait Tagged extends Product

/** JSON from another program, passed on unchanged. */
final case class RawJson(text: String)

/**
 * Encodes case classes as JSON, for `tailrace/contract` in Python. A field `beganUs` becomes `began_us`. Every field is
 * written, `None` as null.
 */
object JsonEncoder {
  private val factory = new JsonFactory
  private val names = new ConcurrentHashMap[Class[_], Array[String]]

  def encode(value: Any): String = {
    val text = new StringWriter
    val json = factory.createGenerator(text)
    write(json, value)
    json.close()
    text.toString
  }

  /** `beganUs` as `began_us`, `QueryStarted` as `query_started`. */
  def snakeCase(name: String): String = name.replaceAll("(?<!^)(?=[A-Z])", "_").toLowerCase(java.util.Locale.ROOT)

  private def write(json: JsonGenerator, value: Any): Unit = value match {
    case null | None => json.writeNull()
    case Some(present) => write(json, present)
    case RawJson(text) => json.writeRawValue(text)
    case text: String => json.writeString(text)
    case flag: Boolean => json.writeBoolean(flag)
    case number: Int => json.writeNumber(number)
    case number: Long => json.writeNumber(number)
    case number: Double => json.writeNumber(number)
    case number: BigInt => json.writeNumber(number.bigInteger)
    case entries: scala.collection.Map[_, _] => writeMap(json, entries)
    case values: Iterable[_] =>
      json.writeStartArray()
      values.foreach(write(json, _))
      json.writeEndArray()
    case record: Product => writeRecord(json, record)
    case other => throw new IllegalArgumentException(s"${other.getClass.getName} cannot be encoded as JSON")
  }

  private def writeMap(json: JsonGenerator, entries: scala.collection.Map[_, _]): Unit = {
    json.writeStartObject()
    entries.foreach { case (key, value) =>
      json.writeFieldName(key.toString)
      write(json, value)
    }
    json.writeEndObject()
  }

  private def writeRecord(json: JsonGenerator, record: Product): Unit = {
    json.writeStartObject()
    record match {
      case tagged: Tagged => json.writeStringField("type", snakeCase(tagged.productPrefix))
      case _ =>
    }
    fieldNames(record).iterator.zip(record.productIterator).foreach { case (name, value) =>
      json.writeFieldName(name)
      write(json, value)
    }
    json.writeEndObject()
  }

  private def fieldNames(record: Product): Array[String] =
    names.computeIfAbsent(record.getClass, _ => record.productElementNames.map(snakeCase).toArray)
}
