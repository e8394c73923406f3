package org.apache.spark.sql.tailrace.plan

import org.apache.spark.sql.catalyst.FunctionIdentifier
import org.apache.spark.sql.catalyst.analysis.FunctionRegistry.FunctionBuilder
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.DeclarativeAggregate
import org.apache.spark.sql.catalyst.trees.LeafLike
import org.apache.spark.sql.types.{DataType, IntegerType, StringType}

/**
 * What a result of a session window says of its session: that it is open, that it is part of another one now, or that it is
 * closed. In micro-batch there are results of closed sessions only.
 *
 * It is an aggregate because only such can be beside the others in `agg(…)`. What is kept of it in the state is always
 * "closed"; the operator that passes a session on writes into the row what is true then.
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
