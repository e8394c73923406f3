package org.apache.spark.sql.tailrace.epoch.overlap

import org.apache.spark.sql.catalyst.trees.TreePattern.CURRENT_LIKE
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.datasources.v2.{LowLatencyClock, RealTimeStreamScanExec, WriteToDataSourceV2Exec}
import org.apache.spark.sql.execution.streaming.operators.stateful.StateStoreWriter
import org.apache.spark.sql.execution.streaming.operators.stateful.transformwithstate.TransformWithStateExec
import org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution
import org.apache.spark.sql.execution.streaming.state.{RocksDBStateStoreProvider, StateStoreConf}
import org.apache.spark.sql.tailrace.internals.kafka.KafkaStream
import org.apache.spark.sql.tailrace.origin.SourceScans
import org.apache.spark.sql.tailrace.plan.Stages
import org.apache.spark.util.SystemClock

import tailrace.support.{Operators, Sinks, Support}

/** Whether the epochs of a query can overlap. What cannot be said ahead, such as free slots, is looked at later. */
private[epoch] object OverlapSupport {
  /**
   * Why the epochs of this query begin only when the one before has ended; none if they can overlap.
   *
   * @param operators the plan with the operators that will run
   */
  def reasonAgainst(operators: SparkPlan, query: MicroBatchExecution): Option[String] = Iterator(
    // Readers are handed over within a JVM.
    Option.when(!operators.session.sparkContext.isLocal)("the application has executors of its own"),
    Option.when(!LowLatencyClock.getClock.isInstanceOf[SystemClock])("the clock is that of a test"),
    sinkAgainst(Sinks.of(query.sink.getClass.getName, query.sink.name)),
    SourceScans.in(operators).find(scan => !KafkaStream.isKafka(scan.stream)).map(_ => "a source is not Kafka"),
    operatorAgainst(operators),
    stateAgainst(operators),
    Option.when(hasTransaction(operators))("the sink has a transaction"),
    // Spark puts in the time at which it plans the epoch.
    Option.when(query.logicalPlan.containsPattern(CURRENT_LIKE))("it asks for the current time or user")
  ).flatten.nextOption()

  private def sinkAgainst(sink: Support): Option[String] =
    Option.when(!sink.overlaps)(s"the sink ${sink.name} does not overlap epochs")

  private def operatorAgainst(operators: SparkPlan): Option[String] = operators.collectFirst {
    case node if isOnTheStreamingPath(node) && !supportOf(node).overlaps =>
      s"${supportOf(node).name} does not overlap epochs"
  }

  private def stateAgainst(operators: SparkPlan): Option[String] = {
    val conf = StateStoreConf(operators.session.sessionState.conf)
    operators.collectFirst { case operator: StateStoreWriter => operator }.flatMap { _ =>
      if (conf.providerClass != classOf[RocksDBStateStoreProvider].getName) Some("the state is not in RocksDB")
      // The next epoch must name the state that it continues with.
      else if (!conf.enableStateStoreCheckpointIds) Some("the state's checkpoints have no ids")
      else if (conf.unloadOnCommit) Some("state stores are unloaded after each epoch")
      else Option.when(operators.exists(readsInitialState))("transformWithState reads its initial state")
    }
  }

  /** Only the very first epoch of a query does. */
  private def readsInitialState(node: SparkPlan): Boolean = node match {
    case operator: TransformWithStateExec => operator.hasInitialState
    case _ => false
  }

  private def isOnTheStreamingPath(node: SparkPlan): Boolean =
    Stages.reads(node) && !node.isInstanceOf[RealTimeStreamScanExec]

  private def supportOf(node: SparkPlan): Support = Operators.of(node.getClass.getName, node.nodeName)

  private def hasTransaction(operators: SparkPlan): Boolean = operators match {
    case write: WriteToDataSourceV2Exec => write.transaction.isDefined
    case _ => false
  }
}
