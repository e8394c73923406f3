package org.apache.spark.sql.tailrace.operators.python

/**
 * How far the exchange with a worker has come.
 *
 * {{{
 *   Starting --commandSent--> Exchanging --endSent--> InputEnded
 *      |                          |                       |
 *      +--------------------------+-----------------------+--sendingFailed, readingFailed--> Broken
 *
 *   Starting, Exchanging, InputEnded, Broken
 *      |
 *      +--workerEnded----> Finished --feederFailed--+
 *      +--feederFailed------------------------------+--> FeederFailed
 *      +--workerKilled---> Killed
 * }}}
 *
 * `Finished`, `FeederFailed` and `Killed` are outcomes: what becomes of the worker then is up to its [[WorkerLease]].
 * An event that a state does not mention leaves it as it is: the feeder and the reader report events independently,
 * and one of them may be late.
 */
private[python] sealed trait ExchangeState {

  /** True if batches, timer ticks and the end of the input may be sent. */
  def acceptsInput: Boolean = false

  /** The worker knows what to run. */
  def commandSent: ExchangeState = this

  /** The end of the input is about to be sent. */
  def endSent: ExchangeState = this

  /** A message to the worker was cut off, or its socket is closed. */
  def sendingFailed: ExchangeState = this

  /** A message from the worker was cut off. */
  def readingFailed: ExchangeState = this

  /** The worker reported its orderly end, after its last result. */
  def workerEnded: ExchangeState = this

  /** The source, or an expression over its rows, failed. */
  def feederFailed(reason: Throwable): ExchangeState = this

  /** The worker is given up. */
  def workerKilled: ExchangeState = this
}

private[python] object ExchangeState {

  /** What can happen as long as there is no outcome. */
  private[python] sealed trait Undecided extends ExchangeState {
    override def sendingFailed: ExchangeState = Broken
    override def readingFailed: ExchangeState = Broken
    override def workerEnded: ExchangeState = Finished(inSync = true)
    override def feederFailed(reason: Throwable): ExchangeState = FeederFailed(reason)
    override def workerKilled: ExchangeState = Killed
  }

  /** The feeder sends the worker command; no other thread may send. The worker may end without asking for a row. */
  case object Starting extends Undecided {
    override def commandSent: ExchangeState = Exchanging
  }

  /** Batches go out and results come in. A function over an iterator may end the exchange here by returning early. */
  case object Exchanging extends Undecided {
    override def acceptsInput: Boolean = true
    override def endSent: ExchangeState = InputEnded
  }

  /** Nothing more is sent; the remaining results come in. */
  case object InputEnded extends Undecided

  /**
   * The worker cannot take part in an orderly end any more, but it may have left results, a traceback or its own end
   * to read.
   */
  case object Broken extends Undecided {
    override def workerEnded: ExchangeState = Finished(inSync = false)
  }

  /**
   * All results have been read. The feeder may still be inside the source or a message.
   *
   * @param inSync false if a message was cut off, so the worker cannot serve another task
   */
  final case class Finished(inSync: Boolean) extends ExchangeState {
    override def sendingFailed: ExchangeState = Finished(inSync = false)
    override def feederFailed(reason: Throwable): ExchangeState = FeederFailed(reason)
  }

  /** The reader throws `reason` as soon as it would have to wait for a result. */
  final case class FeederFailed(reason: Throwable) extends ExchangeState

  /** No result can be read any more; an attempt throws. */
  case object Killed extends ExchangeState
}
