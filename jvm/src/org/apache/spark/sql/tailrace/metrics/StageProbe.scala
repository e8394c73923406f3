package org.apache.spark.sql.tailrace.metrics

/** Times rows as they enter a task through a shuffle and leave it for the next stage. */
final class StageProbe(task: TaskIdentity, stage: Int) {
  private lazy val shuffle = task.ofStage(Figure.Shuffle, stage)
  private lazy val within = task.ofStage(Figure.Stage, stage)

  def entered(afterMicros: Long, weight: Int): Unit = shuffle.record(afterMicros, weight)

  def left(afterMicros: Long, weight: Int): Unit = within.record(afterMicros, weight)
}

object StageProbe {
  def ofThisTask(stage: Int): StageProbe = new StageProbe(TaskIdentity.ofThisTask(), stage)
}
