package org.apache.spark.sql.tailrace.internals.kafka

import java.time.Duration
import java.util.concurrent.TimeUnit

import scala.collection.mutable

import org.apache.kafka.clients.producer.KafkaProducer

import org.apache.spark.util.ThreadUtils

/**
 * The Kafka producers of an executor, kept from epoch to epoch: to make one takes longer than an epoch's boundary
 * may.
 */
object Producers {
  type Producer = KafkaProducer[Array[Byte], Array[Byte]]

  private val KeptForMs = TimeUnit.MINUTES.toMillis(10)
  private val LooksEveryMs = TimeUnit.MINUTES.toMillis(1)

  private final class Shared(val options: ClientOptions, val producer: Producer) {
    var users = 0
    // To be closed when its last user has given it back, and to be given to no other.
    var isGivenUp = false
    var idleSince = System.currentTimeMillis()
  }
  private final case class Kept(producer: Producer, run: String, idleSince: Long)

  private val shared = mutable.ArrayBuffer.empty[Shared]
  private val transactional = mutable.HashMap.empty[String, Kept]
  private lazy val housekeeping = ThreadUtils.newDaemonSingleThreadScheduledExecutor("tailrace-producers")

  /** All tasks with the same settings send through one producer. To be given back by [[release]]. */
  def share(options: ClientOptions): Producer = synchronized {
    keepHouse()
    val entry = shared.find(one => one.options == options && !one.isGivenUp).getOrElse {
      val added = new Shared(options, new Producer(options.producer(None)))
      shared += added
      added
    }
    entry.users += 1
    entry.producer
  }

  /**
   * @param mayBeKept whether all that was sent through it has been answered for. If not, the rest is given up when no
   *                  other task uses the producer.
   */
  def release(producer: Producer, mayBeKept: Boolean = true): Unit = {
    val unused = synchronized {
      val entry = shared.find(_.producer eq producer)
      entry.foreach { one =>
        one.users -= 1
        one.idleSince = System.currentTimeMillis()
        one.isGivenUp |= !mayBeKept
      }
      val unused = entry.filter(one => one.isGivenUp && one.users == 0)
      shared --= unused
      unused
    }
    unused.foreach(entry => discard(entry.producer))
  }

  /**
   * A task's own producer, which fences all older ones of its id: what they have not committed is void, and they can
   * write no more. To be given back by [[keep]] or [[discard]].
   *
   * @param mayBeKept whether this executor had the id last in this run: a producer it kept is then not fenced
   */
  def transactional(options: ClientOptions, id: String, run: String, mayBeKept: Boolean): Producer = {
    val kept = synchronized {
      keepHouse()
      transactional.remove(id)
    }
    kept match {
      case Some(Kept(producer, ofRun, _)) if mayBeKept && ofRun == run => producer
      case other =>
        other.foreach(old => discard(old.producer))
        val producer = new Producer(options.producer(Some(id)))
        try KafkaRefusals.coded(options.kafka)(producer.initTransactions())
        catch {
          case failure: Throwable =>
            discard(producer)
            throw failure
        }
        producer
    }
  }

  def keep(id: String, run: String, producer: Producer): Unit =
    synchronized(transactional.put(id, Kept(producer, run, System.currentTimeMillis()))).foreach(old =>
      discard(old.producer))

  def discard(producer: Producer): Unit = producer.close(Duration.ZERO)

  /** Makes what an older run with these ids has not committed void, and lets it write no more. */
  def fence(options: ClientOptions, ids: Seq[String]): Unit =
    ThreadUtils.parmap(ids, "tailrace-fence", math.max(1, math.min(8, ids.length))) { id =>
      val producer = new Producer(options.producer(Some(id)))
      try KafkaRefusals.coded(options.kafka)(producer.initTransactions())
      finally discard(producer)
    }

  private var keepsHouse = false

  private def keepHouse(): Unit = if (!keepsHouse) {
    keepsHouse = true
    housekeeping.scheduleWithFixedDelay(() => closeIdle(), LooksEveryMs, LooksEveryMs, TimeUnit.MILLISECONDS)
  }

  private def closeIdle(): Unit = {
    val idle = synchronized {
      val before = System.currentTimeMillis() - KeptForMs
      val unused = shared.filter(entry => entry.users == 0 && entry.idleSince < before)
      val unclaimed = transactional.filter { case (_, entry) => entry.idleSince < before }
      shared --= unused
      transactional --= unclaimed.keys
      unused.map(_.producer) ++ unclaimed.values.map(_.producer)
    }
    idle.foreach(discard)
  }
}
