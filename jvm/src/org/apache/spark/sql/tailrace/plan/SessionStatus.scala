package org.apache.spark.sql.tailrace.plan

import org.apache.spark.sql.catalyst.FunctionIdentifier
import org.apache.spark.sql.catalyst.analysis.FunctionRegistry.FunctionBuilder
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.DeclarativeAggregate
import org.apache.spark.sql.catalyst.trees.LeafLike
import org.apache.spark.sql.types.{DataType, IntegerType, StringType}

/**
 * The status of a session in a result of a session window: open, merged into another session, or closed. Micro-batch
 * emits only closed sessions.
 *
 * It is an aggregate because `agg(…)` takes only aggregates. The state always contains "closed"; the operator that
 * emits a session writes the current status into the row.
 */
case class SessionStatus() extends DeclarativeAggregate with LeafLike[Expression] {
  import SessionStatus._

  private lazy val status = AttributeReference(Name, IntegerType, nullable = false)()

  override def nullable: Boolean = false
  override def dataType: DataType = StringType
  override def prettyName: String = Name
  override lazy val aggBufferAttributes: Seq[AttributeReference] = Seq(status)
  override lazy val initialValues: Seq[Expression] = Seq(Literal(Closed))
  override lazy val updateExpressions: Seq[Expression] = Seq(status)
  override lazy val mergeExpressions: Seq[Expression] = Seq(status.right)
  override lazy val evaluateExpression: Expression = CaseWhen(
    Seq(EqualTo(status, Literal(Open)) -> Literal("open"), EqualTo(status, Literal(Merged)) -> Literal("merged")),
    Some(Literal("closed")))
}

object SessionStatus {
  val Name = "tailrace_session_status"

  val Open = 0
  val Merged = 1
  val Closed = 2

  /** For `SparkSessionExtensions.injectFunction`. */
  val function: (FunctionIdentifier, ExpressionInfo, FunctionBuilder) = (
    FunctionIdentifier(Name),
    new ExpressionInfo(classOf[SessionStatus].getName, Name),
    arguments => {
      require(arguments.isEmpty, s"$Name takes no arguments")
      SessionStatus()
    })
}
