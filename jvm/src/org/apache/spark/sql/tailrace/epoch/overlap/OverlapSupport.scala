package org.apache.spark.sql.tailrace.epoch.overlap

import org.apache.spark.SparkContext
import org.apache.spark.scheduler.TaskSchedulerImpl
import org.apache.spark.sql.catalyst.trees.TreePattern.CURRENT_LIKE
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.datasources.v2.{LowLatencyClock, RealTimeStreamScanExec, WriteToDataSourceV2Exec}
import org.apache.spark.sql.execution.python.streaming.TransformWithStateInPySparkExec
import org.apache.spark.sql.execution.streaming.operators.stateful.{EventTimeWatermarkExec, StateStoreWriter}
import org.apache.spark.sql.execution.streaming.operators.stateful.transformwithstate.TransformWithStateExec
import org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution
import org.apache.spark.sql.execution.streaming.state.{RocksDBStateStoreProvider, StateStoreConf}
import org.apache.spark.sql.internal.SQLConf.STATEFUL_OPERATOR_ALLOW_MULTIPLE
import org.apache.spark.sql.tailrace.internals.EvictionWatermark
import org.apache.spark.sql.tailrace.internals.kafka.KafkaStream
import org.apache.spark.sql.tailrace.origin.SourceScans
import org.apache.spark.sql.tailrace.plan.Stages
import org.apache.spark.sql.tailrace.sink.ExactlyOnceSink
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
    watermarkAgainst(operators),
    replayAgainst(operators),
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

  /** The watermark of an epoch is known a moment after the epoch has begun: too late for an operator that asks. */
  private def watermarkAgainst(operators: SparkPlan): Option[String] =
    if (!operators.exists(_.isInstanceOf[EventTimeWatermarkExec])) None
    else if (!operators.conf.getConf(STATEFUL_OPERATOR_ALLOW_MULTIPLE))
      Some(s"${STATEFUL_OPERATOR_ALLOW_MULTIPLE.key} is off")
    else operators.collectFirst {
      case operator: StateStoreWriter if !EvictionWatermark.canBeKnownLate(operator) && hasWatermark(operator) =>
        s"${supportOf(operator).name} with a watermark does not overlap epochs"
    }

  private def hasWatermark(operator: SparkPlan): Boolean = operator.exists(_.isInstanceOf[EventTimeWatermarkExec])

  /**
   * If a run fails right after a boundary, a sink that writes each row once replays both epochs as one. So what an
   * operator makes of a row must not depend on where the boundary was. With state that was not always so: under load,
   * counts were written again.
   */
  private def replayAgainst(operators: SparkPlan): Option[String] = ExactlyOnceSink.in(operators).flatMap { _ =>
    if (retriesTasks(operators.session.sparkContext)) Some("failed tasks are retried")
    else operators.collectFirst {
      case operator: StateStoreWriter =>
        s"${supportOf(operator).name} does not overlap epochs if each row is written once"
    }
  }

  /** As in `local[8, 2]`. A task that is retried reads back what it has written, of one epoch. */
  private def retriesTasks(context: SparkContext): Boolean = context.taskScheduler match {
    case scheduler: TaskSchedulerImpl => scheduler.maxTaskFailures > 1
    case _ => true
  }

  /** Only the very first epoch of a query does. */
  private def readsInitialState(node: SparkPlan): Boolean = node match {
    case operator: TransformWithStateExec => operator.hasInitialState
    case operator: TransformWithStateInPySparkExec => operator.hasInitialState
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
