package org.apache.spark.sql.tailrace.sink.store

import java.io.IOException
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path}
import java.util.Locale

import scala.util.Try

import org.apache.spark.network.util.JavaUtils
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import tailrace.TailraceException

/** Reads the options of a sink that writes to a store. Throws the first problem. */
private[sink] final class StoreOptions(options: CaseInsensitiveStringMap) {
  import StoreOptions._

  def get(key: String): Option[String] = Option(options.get(key)).map(_.trim).filter(_.nonEmpty)

  def required(key: String, example: String): String =
    get(key).getOrElse(throw bad(s"the option $key is missing", s".option(\"$key\", \"$example\")"))

  def positive(key: String, default: String): Int =
    get(key).getOrElse(default).toIntOption.filter(_ > 0).getOrElse(
      throw bad(s"$key is not a positive number", s".option(\"$key\", \"$default\")"))

  def durationMs(key: String, default: String): Long = duration(key, get(key).getOrElse(default), default)

  def durationMs(key: String): Option[Long] = get(key).map(duration(key, _, "1 hour"))

  private def duration(key: String, text: String, example: String): Long = {
    // Spark's own reader knows no plural.
    val short = text.replaceAll("\\s+", "").toLowerCase(Locale.ROOT)
    val unit = LongUnits.collectFirst {
      case (long, letter) if short.endsWith(long) => short.stripSuffix(long) + letter
    }
    Try(JavaUtils.timeStringAsMs(unit.getOrElse(short))).toOption.filter(_ > 0).getOrElse(
      throw bad(s"$key is '$text', which is not a duration", s".option(\"$key\", \"$example\")"))
  }

  def batchRows: Int = positive("batchsize", "1000")

  def retryMs: Long = durationMs("retryTimeout", "120s")

  def columns(key: String): Seq[String] =
    get(key).toSeq.flatMap(_.split(',')).map(_.trim).filter(_.nonEmpty) match {
      case names if names.distinct.length < names.length =>
        throw bad(s"$key names a column twice", s".option(\"$key\", \"id\")")
      case names => names
    }

  /**
   * Read on the driver, which hands it to the tasks.
   *
   * @param variable of the environment, if no option has it
   */
  def password(variable: String): Option[String] =
    Option(options.get("password")).orElse(get("passwordFile").map(fromFile)).orElse(sys.env.get(variable))

  private def fromFile(file: String): String =
    try Files.readString(Path.of(file), UTF_8).stripLineEnd
    catch {
      case failure: IOException =>
        throw bad(
          s"passwordFile $file cannot be read: ${failure.getClass.getSimpleName}",
          "name a file on the driver's machine that holds only the password and that this user may read.")
    }
}

private[sink] object StoreOptions {
  private val LongUnits = Seq(
    "milliseconds" -> "ms",
    "millisecond" -> "ms",
    "seconds" -> "s",
    "second" -> "s",
    "minutes" -> "m",
    "minute" -> "m",
    "hours" -> "h",
    "hour" -> "h",
    "days" -> "d",
    "day" -> "d")

  def bad(problem: String, fix: String): TailraceException =
    new TailraceException("TAILRACE_BAD_SINK_OPTION", s"$problem.", fix)

  def passwordInUrl(variable: String): TailraceException = bad(
    "url contains a password, which logs and plans would show",
    s"remove it, and set passwordFile or the environment variable $variable.")
}

/** Why a query cannot be written to its store, and what to do about it. */
private[tailrace] final case class StoreProblem(code: String, problem: String, fix: String)

private[tailrace] object StoreProblem {
  /** From the form of its message: [CODE] problem, then the fix. */
  def of(failure: TailraceException): StoreProblem = StoreProblem(
    failure.getCondition,
    failure.getMessage.linesIterator.next().dropWhile(_ != ' ').trim,
    failure.getMessage.split("\nFix: ", 2).last)

  /** Throws all problems at once, if there are any. */
  def refuse(found: Seq[StoreProblem]): Unit = found.headOption.foreach { first =>
    throw new TailraceException(
      first.code,
      found.map(_.problem).mkString("\n"),
      found.map(_.fix).distinct.mkString("\n     "))
  }
}
