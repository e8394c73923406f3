package org.apache.spark.sql.tailrace.errors

import java.util.UUID

import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.tailrace.internals.kafka.{ClientOptions, KafkaStream}
import org.apache.spark.sql.tailrace.origin.SourceScans

import tailrace.TailraceException

/** What happens to a record that cannot be processed. */
sealed trait ErrorPolicy extends Serializable {
  /** True if the query skips the record and continues. */
  def skipsBadRecords: Boolean = true
}

object ErrorPolicy {
  case object Fail extends ErrorPolicy {
    override def skipsBadRecords: Boolean = false
  }

  final case class Drop(perMinute: Int) extends ErrorPolicy

  /** @param sources by number of the source, how to reach its brokers, from which the original record is read */
  final case class DeadLetter(topic: String, perMinute: Int, query: String, sources: IndexedSeq[ClientOptions])
      extends ErrorPolicy

  val ActionKey = "onError"
  val TopicKey = "deadLetterTopic"
  val LimitKey = "errorsPerMinute"
  private val Code = "TAILRACE_BAD_ERROR_POLICY"
  private val DefaultLimit = 60

  /** What is wrong with the options of a query's writer. */
  final case class Problem(problem: String, fix: String) {
    def code: String = Code
    def error: TailraceException = new TailraceException(Code, problem, fix)
  }

  def problemsIn(options: Map[String, String]): Seq[Problem] = {
    val action = actionIn(options)
    val limit = options.get(LimitKey)
    Seq(
      Option.when(!Actions(action))(
        Problem(s"$ActionKey is '$action', which is not a policy.", "choose fail, dead-letter or drop.")),
      Option.when(action == "dead-letter" && topicIn(options).isEmpty)(
        Problem(s"$ActionKey is dead-letter, but $TopicKey is not set.", s".option(\"$TopicKey\", \"…\").")),
      limit.filter(limitIn(_).isEmpty).map(text =>
        Problem(s"$LimitKey is '$text', which is not a positive number.", s".option(\"$LimitKey\", \"60\")."))).flatten
  }

  /** From the options of a query's writer; its plan tells how to reach the brokers that it reads from. */
  def of(options: Map[String, String], query: UUID, plan: SparkPlan): ErrorPolicy = {
    problemsIn(options).headOption.foreach(found => throw found.error)
    val perMinute = options.get(LimitKey).flatMap(limitIn).getOrElse(DefaultLimit)
    actionIn(options) match {
      case "drop" => Drop(perMinute)
      case "dead-letter" => DeadLetter(topicIn(options).get, perMinute, query.toString, sourcesOf(plan))
      case _ => Fail
    }
  }

  private val Actions = Set("fail", "dead-letter", "drop")

  private def actionIn(options: Map[String, String]): String = options.getOrElse(ActionKey, "fail").trim

  private def topicIn(options: Map[String, String]): Option[String] =
    options.get(TopicKey).map(_.trim).filter(_.nonEmpty)

  private def limitIn(text: String): Option[Int] = text.trim.toIntOption.filter(_ > 0)

  private def sourcesOf(plan: SparkPlan): IndexedSeq[ClientOptions] = SourceScans.in(plan).map { scan =>
    ClientOptions.ofSource(KafkaStream.clientParams(scan.stream).getOrElse(
      throw Problem(
        s"$ActionKey is dead-letter, but the source ${scan.stream} is not Kafka.",
        "read from Kafka, or choose drop.").error))
  }.toIndexedSeq
}
