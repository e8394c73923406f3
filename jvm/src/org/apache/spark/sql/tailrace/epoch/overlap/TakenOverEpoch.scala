package org.apache.spark.sql.tailrace.epoch.overlap

import org.apache.spark.sql.tailrace.epoch.context.{EpochId, Overlap}
import org.apache.spark.sql.tailrace.operators.state.{EpochTakeOver, StateTakeOver}

/** Tells stateful operators of an epoch that is started ahead what the epoch before hands over. */
private[epoch] final case class TakenOverEpoch(id: EpochId, beginsAtMs: Long) extends EpochTakeOver {
  // The hand-over is looked up now: it is gone when the epoch before is forgotten.
  override def ofState(operator: Long, partition: Int): StateTakeOver =
    new TakenOverState(TakenOver.from(id), operator, partition)
}

private[epoch] object TakenOverEpoch {
  /** None if the epoch is not started ahead. */
  def of(overlap: Overlap): Option[TakenOverEpoch] =
    overlap.follows.map(running => TakenOverEpoch(overlap.id, running.sources.map(_.endsAtMs).max))
}

private final class TakenOverState(before: HandOver, operator: Long, partition: Int) extends StateTakeOver {
  override def awaitCheckpoints(): Array[String] =
    take(HandOverKey.State(operator, partition)).asInstanceOf[Array[String]]

  override def awaitEvictionWatermark(): Option[Long] =
    take(HandOverKey.Watermark(operator, partition)).asInstanceOf[Option[Long]]

  private def take(key: HandOverKey): AnyRef = before.take(key, TakenOver.cancellationOfThisTask())
}
