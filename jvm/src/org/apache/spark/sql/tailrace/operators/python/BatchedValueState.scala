package org.apache.spark.sql.tailrace.operators.python

import java.util.{ArrayList, IdentityHashMap, List => JavaList}

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import net.razorvine.pickle.{Pickler, Unpickler}

import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.{CatalystTypeConverters, InternalRow}
import org.apache.spark.sql.catalyst.encoders.ExpressionEncoder
import org.apache.spark.sql.catalyst.expressions.GenericRowWithSchema
import org.apache.spark.sql.execution.python.EvaluatePython
import org.apache.spark.sql.execution.python.streaming.ValueStateInfo
import org.apache.spark.sql.execution.streaming.operators.stateful.transformwithstate.statefulprocessor.ImplicitGroupingKeyTracker
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.streaming.ValueState
import org.apache.spark.sql.types.{BinaryType, StructType}

/**
 * The values of many keys in one message, which Spark's state server takes for one more state variable. Its own protocol
 * takes a message for each key and each value, parses it with a converter of its own and answers each by itself: for a
 * processor with many keys that was most of the work.
 *
 * @param variables those of the processor, as the server knows them
 */
private[python] final class BatchedValueState(keySchema: StructType, variables: mutable.HashMap[String, ValueStateInfo])
    extends ValueState[Row] {
  import BatchedValueState._

  EvaluatePython.registerPicklers()
  private val unpickler = new Unpickler
  private val keyOf = rowOf(keySchema, ExpressionEncoder(keySchema).resolveAndBind().createDeserializer())
  private val used = new IdentityHashMap[ValueStateInfo, Variable]
  private var asked: Option[(Array[String], JavaList[Any])] = None

  /** Values to write, or keys whose values are to be read by [[get]]. */
  override def update(message: Row): Unit = unpickler.loads(message.getAs[Array[Byte]](0)) match {
    case Array(name: String, keys: JavaList[_], values: JavaList[_]) =>
      write(name, keys.asScala.iterator, values.asScala.iterator)
    case Array(names: JavaList[_], keys: JavaList[_]) =>
      asked = Some((names.asScala.map(_.toString).toArray, keys.asInstanceOf[JavaList[Any]]))
    case other => throw new IllegalArgumentException(s"Not a message to $Name: ${other.getClass.getName}")
  }

  override def get(): Row = {
    val (names, keys) = asked.getOrElse(throw new IllegalStateException("No keys were asked for"))
    asked = None
    val read = names.map(variable)
    val found = new ArrayList[Any](keys.size)
    keys.forEach { key =>
      ImplicitGroupingKeyTracker.setImplicitKey(keyOf(key))
      found.add(read.map(_.read()))
    }
    new GenericRowWithSchema(Array(new Pickler(false).dumps(found)), Schema)
  }

  override def exists(): Boolean = asked.isDefined
  override def clear(): Unit = asked = None

  private def write(name: String, keys: Iterator[Any], values: Iterator[Any]): Unit = {
    val written = variable(name)
    keys.zip(values).foreach { case (key, value) =>
      ImplicitGroupingKeyTracker.setImplicitKey(keyOf(key))
      written.write(value)
    }
  }

  private def variable(name: String): Variable = used.computeIfAbsent(variables(name), new Variable(_))
}

private[python] object BatchedValueState {

  /** Known to the worker. */
  val Name = "$tailrace.values"

  private val Schema = new StructType().add("message", BinaryType)

  /** The processor's variables by name, for Spark's server, which fills them in. */
  def variables(keySchema: StructType): mutable.HashMap[String, ValueStateInfo] = {
    val all = mutable.HashMap.empty[String, ValueStateInfo]
    all.put(
      Name,
      ValueStateInfo(
        new BatchedValueState(keySchema, all),
        Schema,
        ExpressionEncoder(Schema).resolveAndBind().createDeserializer()))
    all
  }

  private def rowOf(schema: StructType, deserializer: ExpressionEncoder.Deserializer[Row]): Any => Row = {
    val fromPython = EvaluatePython.makeFromJava(schema)
    value => deserializer(fromPython(value).asInstanceOf[InternalRow])
  }

  /** One of the processor's variables. */
  private final class Variable(info: ValueStateInfo) {
    private val fromPython = rowOf(info.schema, info.deserializer)
    private val toInternal = CatalystTypeConverters.createToCatalystConverter(info.schema)
    private val binaryAsBytes = SQLConf.get.pysparkBinaryAsBytes

    def write(value: Any): Unit =
      if (value == null) info.valueState.clear() else info.valueState.update(fromPython(value))

    /** Without its column names, which the worker knows. */
    def read(): Any = info.valueState.get() match {
      case null => null
      case row =>
        EvaluatePython.toJava(toInternal(row), info.schema, binaryAsBytes).asInstanceOf[Row].toSeq.toArray[Any]
    }
  }
}
