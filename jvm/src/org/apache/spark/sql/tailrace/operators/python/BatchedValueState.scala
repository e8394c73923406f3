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
 * Reads and writes the values of many keys in one message. To Spark's state server it is one more state variable. The
 * server's own protocol needs a message for each key and each value, and builds a converter for each message; for a
 * processor with many keys that was most of the work.
 *
 * @param variables the processor's variables in the server
 */
private[python] final class BatchedValueState(keySchema: StructType, variables: mutable.HashMap[String, ValueStateInfo])
    extends ValueState[Row] {
  import BatchedValueState._

  EvaluatePython.registerPicklers()
  private val unpickler = new Unpickler
  private val keyOf = rowOf(keySchema, ExpressionEncoder(keySchema).resolveAndBind().createDeserializer())
  private val used = new IdentityHashMap[ValueStateInfo, Variable]
  private var requested: Option[(Array[String], JavaList[Any])] = None

  /** Takes values to write, or the keys whose values the next [[get]] returns. */
  override def update(message: Row): Unit = unpickler.loads(message.getAs[Array[Byte]](0)) match {
    case Array(name: String, keys: JavaList[_], values: JavaList[_]) =>
      write(name, keys.asScala.iterator, values.asScala.iterator)
    case Array(names: JavaList[_], keys: JavaList[_]) =>
      requested = Some((names.asScala.map(_.toString).toArray, keys.asInstanceOf[JavaList[Any]]))
    case other => throw new IllegalArgumentException(s"Not a message to $Name: ${other.getClass.getName}")
  }

  override def get(): Row = {
    val (names, keys) = requested.getOrElse(throw new IllegalStateException("No keys were requested"))
    requested = None
    val read = names.map(variable)
    val found = new ArrayList[Any](keys.size)
    keys.forEach { key =>
      ImplicitGroupingKeyTracker.setImplicitKey(keyOf(key))
      found.add(read.map(_.read()))
    }
    new GenericRowWithSchema(Array(new Pickler(false).dumps(found)), Schema)
  }

  override def exists(): Boolean = requested.isDefined
  override def clear(): Unit = requested = None

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

  /** The worker uses the same name. */
  val Name = "$tailrace.values"

  private val Schema = new StructType().add("message", BinaryType)

  /** An initial map of variables for Spark's server, which adds those of the processor. */
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

    /** The value without its column names, which the worker knows. */
    def read(): Any = info.valueState.get() match {
      case null => null
      case row =>
        EvaluatePython.toJava(toInternal(row), info.schema, binaryAsBytes).asInstanceOf[Row].toSeq.toArray[Any]
    }
  }
}
