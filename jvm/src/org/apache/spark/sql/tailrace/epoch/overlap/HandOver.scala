package org.apache.spark.sql.tailrace.epoch.overlap

import java.util.concurrent.ConcurrentHashMap

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import org.apache.spark.sql.tailrace.epoch.context.EpochId
import org.apache.spark.sql.tailrace.operators.state.EpochGivenUp

import tailrace.TailraceException

/** What a task of an epoch hands to the task that continues its work in the next epoch. */
sealed trait HandOverKey

object HandOverKey {
  /** The open reader of a source partition. */
  final case class Reader(source: Int, topic: String, partition: Int) extends HandOverKey

  /** The checkpoints that a task of a stateful operator has committed, one for each of its stores. */
  final case class State(operator: Long, partition: Int) extends HandOverKey

  /** The watermark by which a task of a stateful operator removes state. It is left by the driver. */
  final case class Watermark(operator: Long, partition: Int) extends HandOverKey

  /** That the sink has been given every row of a task of the last stage. */
  final case class Output(task: Int) extends HandOverKey
}

/**
 * The hand-over from the tasks of one epoch to those of the next.
 *
 * Whether there is a next epoch to hand over to is decided once, for all tasks: the driver announces it, unless a task
 * has ended before. So a task that ends either leaves its values to a successor that exists, or keeps them, and never
 * do some tasks of an epoch hand over and others not.
 *
 * A value can be left once and taken once. A task that is retried after it has left something would compute other ends
 * than the successor began with, and a successor that is retried would miss what it has read: both are refused.
 */
private[overlap] final class HandOver(id: EpochId) {
  import HandOver._

  private var phase: Phase = Undecided
  private val left = mutable.HashMap.empty[HandOverKey, AnyRef]
  private val taken = mutable.HashSet.empty[HandOverKey]

  /** The next epoch is about to be started. False if it is too late for that. */
  def announce(): Boolean = synchronized {
    if (phase == Undecided) {
      phase = Announced
      true
    } else {
      false
    }
  }

  /** The epoch has ended. True if the next one was announced; otherwise it no longer can be. */
  def close(): Boolean = synchronized {
    if (phase == Undecided) {
      phase = Closed
    }
    phase == Announced
  }

  /** The next epoch does not take over after all. Returns what nobody has taken. */
  def withdraw(): Seq[AnyRef] = synchronized {
    phase = Closed
    val untaken = left.values.toSeq
    left.clear()
    notifyAll()
    untaken
  }

  /** True if the next epoch has begun: it has taken over at least one value. */
  def hasBegun: Boolean = synchronized(taken.nonEmpty)

  /** In a task of this epoch, when it begins: an attempt that comes after a hand-over is refused. */
  def refuseRetry(key: HandOverKey): Unit = synchronized {
    if (left.contains(key) || taken.contains(key)) {
      throw retried
    }
  }

  /** In a task of this epoch, when its part is over. False if it has to keep the value. */
  def leave(key: HandOverKey, value: AnyRef): Boolean = synchronized {
    refuseRetry(key)
    close()
    if (phase == Announced) {
      left(key) = value
      notifyAll()
    }
    phase == Announced
  }

  /** In a task of the next epoch: waits until the value has been left. */
  def take(key: HandOverKey, checkCancelled: () => Unit): AnyRef = synchronized {
    if (taken.contains(key)) {
      throw retried
    }
    while (!left.contains(key)) {
      if (phase != Announced) {
        throw new EpochGivenUp(s"epoch ${id.epoch} hands nothing over: the epoch after it was given up")
      }
      checkCancelled()
      wait(LookEveryMs)
    }
    taken += key
    left.remove(key).get
  }

  private def retried: TailraceException = new TailraceException(
    "TAILRACE_RETRY_AFTER_HAND_OVER",
    s"a task of epoch ${id.epoch} or ${id.epoch + 1} failed after the one had handed over to the other, and Spark " +
      "tried it again. Its rows cannot be read a second time without a gap to the other epoch.",
    "start the query again: it continues from its last commit and no row is lost. The failure before this one is the " +
      "cause.")
}

private[overlap] object HandOver {
  // A task that is cancelled is usually interrupted; this bounds the wait if it is not.
  private val LookEveryMs = 200L

  private sealed trait Phase
  private case object Undecided extends Phase
  private case object Announced extends Phase
  private case object Closed extends Phase
}

/**
 * The hand-overs that are under way in this JVM. The driver and all tasks see the same ones, because epochs overlap
 * only where the driver is the only executor.
 */
private[overlap] object HandOvers {
  private val current = new ConcurrentHashMap[EpochId, HandOver]

  /** An epoch's job is about to be submitted. */
  def begin(id: EpochId): HandOver = {
    end(id)
    val fresh = new HandOver(id)
    current.put(id, fresh)
    fresh
  }

  def of(id: EpochId): Option[HandOver] = Option(current.get(id))

  /** The next epoch is over, or there is none. */
  def end(id: EpochId): Unit = Option(current.remove(id)).foreach(discard)

  def endAll(run: String): Unit = current.keySet.asScala.filter(_.run == run).foreach(end)

  def size: Int = current.size

  /** The next epoch is given up. */
  def discard(handOver: HandOver): Unit = handOver.withdraw().foreach {
    case reader: AutoCloseable => reader.close()
    case _ =>
  }
}
