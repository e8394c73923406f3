package tailrace.support

/** One row of the support registry, for programs outside a JVM; mirrors `tailrace/contract/support.py`. */
final case class SupportEntry(
    group: String,
    name: String,
    className: String,
    supported: Boolean,
    overlaps: Boolean,
    note: String,
    reason: String,
    fix: String)

object SupportEntry {
  def all: Seq[SupportEntry] = (Operators.all ++ Sinks.all).map(of)

  private def of(support: Support): SupportEntry = {
    val entry =
      SupportEntry(support.group, support.name, support.className, supported = true, support.overlaps, "", "", "")
    support.level match {
      case Supported(note) => entry.copy(note = note)
      case Unsupported(reason, fix) => entry.copy(supported = false, reason = reason, fix = fix)
    }
  }
}
