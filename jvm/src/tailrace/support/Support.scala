package tailrace.support

/** Whether a part of a query can run in Real-Time Mode and, if not, why and what to do instead. */
sealed trait Level

/** @param note what a user should know about it; may be empty */
final case class Supported(note: String) extends Level
final case class Unsupported(reason: String, fix: String) extends Level

/**
 * One row of the support registry.
 *
 * @param group     its heading in the documentation; empty for what a user never writes
 * @param name      what the user calls it: "stream-stream join", not a class name
 * @param className its class in Spark's plan
 * @param overlaps  true if an epoch with it can begin while the one before still runs
 */
final case class Support(group: String, name: String, className: String, level: Level, overlaps: Boolean = false) {
  def overlapping: Support = copy(overlaps = true)
}
