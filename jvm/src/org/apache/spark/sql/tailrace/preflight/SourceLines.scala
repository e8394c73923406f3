package org.apache.spark.sql.tailrace.preflight

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.trees.{TreeNode, TreeNodeTag}
import org.apache.spark.sql.classic.Dataset
import org.apache.spark.sql.execution.SparkPlan

/** The line of the user's program in which an operation was written, as `file:line`. */
object SourceLines {
  private val Line = TreeNodeTag[String]("tailrace.line")

  /** Marks a dataset as created in this line. Nodes that already have a line keep it. */
  def mark(dataset: Dataset[_], line: String): Unit = dataset.queryExecution.analyzed.foreach { node =>
    if (node.getTagValue(Line).isEmpty) {
      node.setTagValue(Line, line)
    }
  }

  def of(node: TreeNode[_]): Option[String] = node match {
    case plan: LogicalPlan => plan.getTagValue(Line).orElse(ofExpressions(plan))
    case plan: SparkPlan => plan.logicalLink.flatMap(of)
    case _ => None
  }

  // PySpark records the line in which a column was created, but not that of a DataFrame.
  private def ofExpressions(plan: LogicalPlan): Option[String] =
    plan.expressions.iterator
      .flatMap(_.collect { case part => part.origin.pysparkErrorContext.map(_._2) }.flatten)
      .filter(_.nonEmpty)
      .nextOption()
}
