package org.apache.spark.sql.tailrace.operators.state

import org.apache.spark.sql.execution.SparkPlan

/** An epoch that is started while the one before still runs, as its stateful operators see it. */
private[tailrace] trait EpochTakeOver extends Serializable {

  /** When the epoch before ends, and the first row of this one can come. */
  def beginsAtMs: Long

  /** In a task, when it is built. */
  def ofState(operator: Long, partition: Int): StateTakeOver
}

/** What a task is told by the epoch before when it can be known. */
private[tailrace] trait StateTakeOver {

  /** Waits until the epoch before has committed the state, and returns its checkpoints. To be asked once. */
  def awaitCheckpoints(): Array[String]

  /** Waits for the watermark by which state is removed. To be asked once, when the input is over. */
  def awaitEvictionWatermark(): Option[Long]
}

/** A stateful operator that has to know whether its epoch is started ahead. */
private[tailrace] trait TakesOverState {

  /** The same operator in an epoch that is started ahead. */
  def takingOver(epoch: EpochTakeOver): SparkPlan
}
