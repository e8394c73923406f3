package org.apache.spark.sql.tailrace.sink.replay

/** Where a sink notes which queries have worked on its open epoch. */
trait QueryLog {
  /** What the last run noted with [[setQueries]], if the epoch was open when it started. */
  def queriesOf(epoch: Long): Option[Seq[String]]

  /**
   * Notes which queries wrote or will write rows of the open epoch. To be called before the tasks write.
   *
   * @param queries their fingerprints
   */
  def setQueries(epoch: Long, queries: Seq[String]): Unit
}

/**
 * Driver-side: the queries that wrote the rows which a run finds in its output. Usually there is one, the query itself.
 * If the user has changed it without draining it first, there are more, until all that the older ones wrote has been
 * replayed.
 *
 * @param epoch  the open epoch when the run started
 * @param logged the fingerprints that the commit before the open epoch has logged, if there is one
 * @param query  the fingerprint of the run's own query
 */
private[sink] final class QueriesOfEpoch(log: QueryLog, epoch: Long, logged: Option[Seq[String]], query: String) {
  private var others = Set.empty[String]

  /** True if no other query wrote any of the rows. If an older version of Tailrace wrote them, this is assumed. */
  def isSame: Boolean = others.isEmpty

  /** Adds the run's own query to the log. To be called before the tasks write. */
  def start(hasRows: Boolean): Unit = {
    // A run that has started since the commit has looked at the output already.
    val known = log.queriesOf(epoch).orElse(logged).getOrElse(Nil)
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
