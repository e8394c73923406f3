package org.apache.spark.sql.tailrace.operators.state

import org.apache.spark.{TaskContext, TaskContextImpl}

/** A task context for a part of a task. Listeners that Spark adds to it run when that part ends. */
object TaskPart {
  def of(task: TaskContext): TaskContextImpl = new TaskContextImpl(
    task.stageId(),
    task.stageAttemptNumber(),
    task.partitionId(),
    task.taskAttemptId(),
    task.attemptNumber(),
    task.numPartitions(),
    task.taskMemoryManager(),
    task.getLocalProperties,
    metricsSystem = null,
    task.taskMetrics(),
    task.cpuAmount(),
    task.resources())

  /** Runs `body` as this part of the task. */
  def in[T](part: TaskContext)(body: => T): T = {
    val before = TaskContext.get()
    TaskContext.setTaskContext(part)
    try body
    finally TaskContext.setTaskContext(before)
  }
}
