package org.apache.spark.sql.tailrace.sink.kafka

/**
 * Driver-side: the queries that wrote the rows which a run finds in its output. Usually there is one, the query itself.
 * If the user has changed it without draining it first, there are more, until all that the older ones wrote has been
 * replayed.
 *
 * @param epoch     the open epoch when the run started
 * @param lastEpoch how the epoch before ended
 * @param query     the fingerprint of the run's own query
 */
private[kafka] final class QueriesOfEpoch(log: OutputLog, epoch: Long, lastEpoch: Option[EpochEnd], query: String) {
  private var others = Set.empty[String]

  /** True if no other query wrote any of the rows. If an older version of Tailrace wrote them, this is assumed. */
  def isSame: Boolean = others.isEmpty

  /** Adds the run's own query to the log. To be called before the tasks write. */
  def start(hasRows: Boolean): Unit = {
    // A run that has started since the commit has looked at the output already.
    val known = log.queriesOf(epoch).orElse(lastEpoch.map(_.queries)).getOrElse(Nil)
    others = if (hasRows) known.toSet - query else Set.empty
    log.setQueries(epoch, all)
  }

  /** The queries whose rows a later run can find, when an epoch has been committed. */
  def after(everythingIsReplayed: Boolean): Seq[String] = {
    if (everythingIsReplayed) {
      others = Set.empty
    }
    all
  }

  private def all: Seq[String] = others.toSeq.sorted :+ query
}
