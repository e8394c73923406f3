package org.apache.spark.sql.tailrace.conf

import java.util.Locale

import scala.util.Try

import org.apache.spark.network.util.JavaUtils
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.unsafe.types.UTF8String

import tailrace.TailraceException

/**
 * All settings of Tailrace, for the plugin and the Python package. The settings page is generated from here (`make
 * docs`). Unknown keys and invalid values are refused when the session or a query starts.
 */
object TailraceConf {
  import Scope._

  private val Prefix = "spark.tailrace."
  // Only this project's own tests set these.
  private val ForTests = s"${Prefix}testing."
  private val LargestPort = 65535
  private val declared = Seq.newBuilder[Setting[_]]

  val LatencyEnabled: Setting[Boolean] =
    boolean("latency.enabled", Some(true), Query, "Measure the latency of rows.", "guide/live-latency.md")

  val PythonTimeout: Setting[Long] = duration(
    "python.timeout",
    Some("2min"),
    "How long a Python function may keep one batch before the query fails.",
    "guide/python.md")

  val WatermarkIdleAfter: Setting[Long] = duration(
    "watermark.idleAfter",
    None,
    "Move the watermark within an epoch, and stop waiting for a source partition that has been silent for this long.",
    "guide/watermarks.md")

  val StartSlotWait: Setting[Long] = duration(
    "start.slotWait",
    Some("30s"),
    "How long `start()` waits for tasks of a stopped query to release their slots.",
    "guide/quickstart.md")

  /** True for auto. */
  val EpochsOverlap: Setting[Boolean] = declare(new Setting(
    s"${Prefix}epochs.overlap",
    "text",
    Some("auto"),
    Query,
    "Begin an epoch while the tasks of the one before still run, so no record waits at the boundary. `auto` does so " +
      "where the query and the free task slots allow it, `off` never.",
    "operate/epoch-boundaries.md",
    "auto or off",
    "off",
    text => Map("auto" -> true, "off" -> false).get(text.toLowerCase(Locale.ROOT))))

  val WarmupEpochs: Setting[Int] = number(
    "warmup.epochs",
    Some(5),
    Int.MaxValue,
    Query,
    "How many epochs at the start of a run are shortened to one second; `0` for none.",
    "operate/epoch-boundaries.md")

  val WarmupPythonWorkers: Setting[Boolean] = boolean(
    "warmup.pythonWorkers",
    None,
    Session,
    "Start a Python worker for each task slot when the session starts. Without a value, only under `tailrace run`.",
    "operate/epoch-boundaries.md")

  val CheckpointFsync: Setting[Boolean] = boolean(
    "checkpoint.fsync",
    Some(true),
    Query,
    "Write checkpoint files through to the disk. With `false` they survive a crash of the process, but " +
      "not a loss of power.",
    "operate/epoch-boundaries.md")

  val CheckWarnOnly: Setting[Set[String]] = declare(new Setting(
    s"${Prefix}check.warnOnly",
    "codes",
    None,
    Query,
    "Codes of findings that do not keep a query from starting.",
    "guide/check.md",
    "codes of findings, separated by commas",
    "TAILRACE_TOO_FEW_SLOTS",
    text => Some(text.split(",").map(_.trim).filter(_.nonEmpty).toSet).filter(_.forall(_.startsWith("TAILRACE_")))))

  val CheckKafkaConfig: Setting[String] = declare(new Setting(
    s"${Prefix}check.kafkaConfig",
    "path",
    None,
    Query,
    "A file of Kafka client properties. The check reaches brokers with them, in the place of the query's own options.",
    "operate/secured-kafka.md",
    "the path of a file",
    "/etc/kafka/client.properties",
    text => Some(text.trim).filter(_.nonEmpty)))

  val DashboardPort: Setting[Int] = number(
    "dashboard.port",
    None,
    LargestPort,
    Session,
    "Serve the dashboard on this port when the session starts; `0` for a free one.",
    "guide/live-latency.md")

  val DashboardHost: Setting[String] =
    text("dashboard.host", Some("127.0.0.1"), Session, "The address the dashboard listens on.", "guide/live-latency.md")

  val DashboardToken: Setting[String] = text(
    "dashboard.token",
    None,
    Session,
    "The token that `tailrace drain` needs. Without a value, a random one that only this user " +
      "of this machine can read.",
    "operate/operations.md")

  // Without a doc: not for users.

  /** Send every row's origin through a shuffle, not only those of timed rows. */
  val OriginEveryRow: Setting[Boolean] = boolean("origin.everyRow", Some(false), Query, "", "")

  /** Set by `tailrace.configure` to the Python package's version. */
  val ClientVersion: Setting[String] = text("clientVersion", None, Session, "", "")

  /** Lazy: complete only when every setting above has been declared. */
  lazy val all: Seq[Setting[_]] = declared.result()

  private lazy val byKey = all.map(setting => setting.key -> setting).toMap

  /** Throws the first problem of these settings. Ignores settings of others. */
  def check(settings: Iterable[(String, String)]): Unit = settings.toSeq.sorted.iterator
    .filter { case (key, _) => key.startsWith(Prefix) && !key.startsWith(ForTests) }
    .flatMap { case (key, value) => byKey.get(key).fold(Option(unknown(key)))(_.problemIn(value)) }
    .nextOption()
    .foreach(throw _)

  /** For Python: the session's value, or the default; null without either. */
  def textOf(session: SparkSession, key: String): String = {
    val setting = byKey.getOrElse(key, throw unknown(key))
    val text = session.conf.getOption(key)
    text.flatMap(setting.problemIn).foreach(throw _)
    text.map(_.trim).filter(_.nonEmpty).orElse(setting.default).orNull
  }

  private def declare[T](setting: Setting[T]): Setting[T] = {
    declared += setting
    setting
  }

  private def unknown(key: String): TailraceException = {
    val name = UTF8String.fromString(key)
    val nearest = all.filter(_.doc.nonEmpty).map(_.key).minBy(known =>
      name.levenshteinDistance(UTF8String.fromString(known)))
    new TailraceException(
      "TAILRACE_UNKNOWN_SETTING",
      s"there is no setting $key.",
      s"the nearest is $nearest; docs/reference/settings.md lists them all.")
  }

  private def boolean(name: String, default: Option[Boolean], scope: Scope, doc: String, page: String) =
    declare(new Setting[Boolean](
      s"$Prefix$name",
      "boolean",
      default.map(_.toString),
      scope,
      doc,
      page,
      "true or false",
      "false",
      _.toLowerCase(Locale.ROOT).toBooleanOption))

  private def number(name: String, default: Option[Int], largest: Int, scope: Scope, doc: String, page: String) =
    declare(new Setting[Int](
      s"$Prefix$name",
      "number",
      default.map(_.toString),
      scope,
      doc,
      page,
      if (largest == Int.MaxValue) "a number from 0" else s"a number from 0 to $largest",
      "0",
      _.toIntOption.filter(value => value >= 0 && value <= largest)))

  /** In milliseconds. */
  private def duration(name: String, default: Option[String], doc: String, page: String) = declare(new Setting[Long](
    s"$Prefix$name",
    "duration",
    default,
    Query,
    doc,
    page,
    "a positive duration with a unit",
    "30s",
    text => Try(JavaUtils.timeStringAsMs(text)).toOption.filter(_ > 0)))

  private def text(name: String, default: Option[String], scope: Scope, doc: String, page: String) =
    declare(new Setting[String](s"$Prefix$name", "text", default, scope, doc, page, "a text", "\"…\"", Some(_)))
}
