package org.apache.spark.sql.tailrace.sink.identity

import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.datasources.v2.RealTimeStreamScanExec
import org.apache.spark.sql.execution.streaming.operators.stateful.StateStoreWriter
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinExec
import org.apache.spark.sql.tailrace.internals.kafka.KafkaStream
import org.apache.spark.sql.tailrace.origin.{RowIdentity, UsesOrigins}
import org.apache.spark.sql.tailrace.plan.Stages
import org.apache.spark.sql.tailrace.sink.dedup.DeduplicationStrategy

/** How the rows of a physical plan can be recognized when they are replayed. */
private[sink] final class PlanIdentity(plan: SparkPlan) {
  private val stateful = plan.collect { case operator: StateStoreWriter => operator }

  def strategy: DeduplicationStrategy =
    if (exists(RowIdentity.Content)) DeduplicationStrategy.ByContent
    else if (stateful.nonEmpty) DeduplicationStrategy.StatefulByOrigin
    else DeduplicationStrategy.StatelessByOrigin(isOrdered = new Stages(plan).depth <= 1)

  /** True if all state is behind the last shuffle, whose rows a replay can put into their first order. */
  def hasStateInLastStageOnly: Boolean =
    new Stages(plan).within(plan).count(_.isInstanceOf[StateStoreWriter]) == stateful.length

  /** Throws if replayed rows could not be recognized. */
  def check(): Unit = {
    plan.collectFirst { case scan: RealTimeStreamScanExec if !KafkaStream.isKafka(scan.stream) => scan }.foreach {
      scan => throw NoRowIdentity.ofSource(scan.stream.toString).error
    }
    // The query itself was checked by MatchIdentity. Joins can also reach the sink in plans that only Spark knows.
    plan.collectFirst {
      case join: StreamingSymmetricHashJoinExec if has(join, RowIdentity.Content) => join
    }.foreach { join =>
      if (!MatchIdentity.Kinds(join.joinType) || stateful.length > 1 || !hasStateInLastStageOnly) {
        throw NoRowIdentity.ofMatches.error
      }
    }
    if (exists(RowIdentity.Unknown)) {
      throw NoRowIdentity.ofBatchFunctions.error
    }
  }

  private def exists(identity: RowIdentity): Boolean = plan.exists(has(_, identity))

  private def has(node: SparkPlan, identity: RowIdentity): Boolean = node match {
    case operator: UsesOrigins => operator.rowIdentity == identity
    case _ => false
  }
}
