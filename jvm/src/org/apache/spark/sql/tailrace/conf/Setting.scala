package org.apache.spark.sql.tailrace.conf

import org.apache.spark.sql.internal.SQLConf

import tailrace.TailraceException

/** When a setting is read. */
sealed abstract class Scope(val name: String)

object Scope {
  /** Once, when the session starts. */
  case object Session extends Scope("session")

  /** When a query starts; `spark.conf.set` before `start()` is early enough. */
  case object Query extends Scope("query")
}

/**
 * One `spark.tailrace.…` setting.
 *
 * @param kind     boolean, number, duration, codes or text
 * @param default  as a user would write it; none if the setting has no default
 * @param doc      for the settings page, which does not list settings without it
 * @param page     the page below docs/ with more
 * @param allowed  completes "which is not …" in an error
 * @param example  a value that is allowed
 */
final class Setting[T] private[conf] (
    val key: String,
    val kind: String,
    val default: Option[String],
    val scope: Scope,
    val doc: String,
    val page: String,
    val allowed: String,
    val example: String,
    read: String => Option[T]) {

  def parse(text: String): T = read(text.trim).getOrElse(throw invalid(text))

  /** The value, or the default; none without either. */
  def of(conf: SQLConf): Option[T] = Option(conf.getConfString(key, null)).orElse(default).map(parse)

  /** The value of a setting that has a default. */
  def valueIn(conf: SQLConf): T = of(conf).getOrElse(throw new NoSuchElementException(key))

  private[conf] def problemIn(text: String): Option[TailraceException] =
    Option.when(read(text.trim).isEmpty)(invalid(text))

  private def invalid(text: String): TailraceException = new TailraceException(
    "TAILRACE_BAD_SETTING",
    s"$key is '$text', which is not $allowed.",
    s"set it to $allowed, for example $example, or remove it${default.fold("")(value => s" for the default, $value")}.")
}
