package org.apache.spark.sql.tailrace.sink.identity

import java.nio.charset.StandardCharsets.UTF_8
import java.security.MessageDigest
import java.util.{Arrays => JArrays, HexFormat}

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.objects.LambdaVariable
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.types.DataType
import org.apache.spark.unsafe.types.CalendarInterval

/**
 * Tells whether two runs compute the same rows from a record. If they do, a row of the open epoch that is replayed with
 * another content (a random number, the current time) is a row that the output already has. If the user has changed the
 * query or where it writes in between, it is a new row.
 *
 * A fingerprint stays the same over restarts of a program, also in another process: it has no ids that Spark counts up,
 * no seeds that Spark or PySpark draws, and nothing of a Python function but its name, kind and type, because pickled
 * bytes differ from process to process. It has no options and no data of the sources either: records are the same in
 * whichever way they are read, and a lookup table may change.
 */
private[sink] object QueryFingerprint {
  private val Length = 32

  /**
   * @param output  where the rows go, such as a topic, if the sink's options say so
   * @param columns the columns that the sink reads
   * @param query   as the user wrote it, analyzed
   */
  def of(output: Option[String], columns: Set[String], query: LogicalPlan): String = {
    val text = new Normalized
    text.put(output)
    // Spark puts the seed into the name of a random column.
    query.output.foreach(column => text.put(Some(column.name).filter(columns)))
    text.put(query)
    val digest = MessageDigest.getInstance("SHA-256").digest(text.result.getBytes(UTF_8))
    HexFormat.of().formatHex(digest).take(Length)
  }

  /** The text of a query. Values of a kind that is not listed, such as functions of the JVM, are omitted. */
  private final class Normalized {
    private val text = new java.lang.StringBuilder
    // Spark counts them up; here they are numbered in the order in which they appear.
    private val ids = mutable.HashMap.empty[Any, Int]

    def result: String = text.toString

    def put(value: Any): Unit = value match {
      case plan: LogicalPlan => putPlan(plan)
      case expression: Expression => putExpression(expression)
      case id: ExprId => add(s"#${number(id)}")
      case dataType: DataType => add(dataType.catalogString)
      case byKey: Map[_, _] => add("", byKey.toSeq.sortBy(_._1.toString): _*)
      case many: Iterable[_] => add("", many.toSeq: _*)
      case one: Option[_] => add("?", one.toSeq: _*)
      case _: String | _: Boolean | _: Int | _: Long | _: Double | _: Enumeration#Value | _: Enum[_] |
          _: CalendarInterval => add(value.toString)
      case part: Product => add(part.productPrefix, part.productIterator.toSeq: _*)
      case _ =>
    }

    private def putPlan(plan: LogicalPlan): Unit = plan match {
      case named: SubqueryAlias => putPlan(named.child)
      case view: View => putPlan(view.child)
      case observed: CollectMetrics => putPlan(observed.child)
      case definition: CTERelationDef => add("CTE", number(("CTE", definition.id)), definition.child)
      case reference: CTERelationRef => add("CTE", number(("CTE", reference.cteId)))
      case sample: Sample =>
        add("Sample", sample.lowerBound, sample.upperBound, sample.withReplacement, sample.child)
      case leaf: LeafNode =>
        add(leaf.nodeName, leaf.output.flatMap(column => Seq[Any](column.name, column.dataType, column.exprId)): _*)
      case other => add(other.nodeName, other.productIterator.toSeq: _*)
    }

    private def putExpression(expression: Expression): Unit = expression match {
      case column: AttributeReference => put(column.exprId)
      case alias: Alias => add("Alias", alias.child, alias.exprId)
      case variable: NamedLambdaVariable => add("Variable", variable.exprId)
      case variable: LambdaVariable => add("Variable", number(("Lambda", variable.id)))
      case Literal(bytes: Array[Byte], dataType) => add("Literal", JArrays.toString(bytes), dataType)
      case literal: Literal => add("Literal", String.valueOf(literal.value), literal.dataType)
      case random: ExpressionWithRandomSeed => add(random.prettyName, random.children.filterNot(isSeed(random)): _*)
      case python: PythonFuncExpression =>
        add(
          "Python",
          Seq[Any](python.name, python.evalType, python.udfDeterministic, python.dataType) ++ python.children: _*)
      case udf: ScalaUDF => add("UDF", Seq[Any](udf.udfName, udf.dataType) ++ udf.children: _*)
      case other => add(other.prettyName, other.productIterator.toSeq: _*)
    }

    private def isSeed(random: ExpressionWithRandomSeed)(child: Expression): Boolean = child eq random.seedExpression

    private def add(name: String, parts: Any*): Unit = {
      // The length keeps a name with brackets in it from looking like a structure.
      text.append(name.length).append(':').append(name).append('(')
      parts.foreach { part =>
        put(part)
        text.append(',')
      }
      text.append(')')
    }

    private def number(id: Any): Int = ids.getOrElseUpdate(id, ids.size)
  }
}
