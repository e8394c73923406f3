package org.apache.spark.sql.tailrace.errors

import java.util.UUID

import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.datasources.v2.RealTimeStreamScanExec
import org.apache.spark.sql.tailrace.internals.kafka.{ClientOptions, KafkaStream}

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

  /** @param sources by source topic, how to reach its brokers, from which the original record is read */
  final case class DeadLetter(topic: String, perMinute: Int, query: String, sources: Map[String, ClientOptions])
      extends ErrorPolicy

  val ActionKey = "onError"
  val TopicKey = "deadLetterTopic"
  val LimitKey = "errorsPerMinute"
  private val DefaultLimit = 60

  /** From the options of a query's writer; its plan tells how to reach the brokers that it reads from. */
  def of(options: Map[String, String], query: UUID, plan: SparkPlan): ErrorPolicy = {
    val perMinute = options.get(LimitKey).fold(DefaultLimit) { text =>
      text.trim.toIntOption.filter(_ > 0).getOrElse(throw bad(
        s"$LimitKey is '$text', which is not a positive number",
        s".option(\"$LimitKey\", \"60\")."))
    }
    options.getOrElse(ActionKey, "fail").trim match {
      case "fail" => Fail
      case "drop" => Drop(perMinute)
      case "dead-letter" =>
        val topic = options.get(TopicKey).map(_.trim).filter(_.nonEmpty).getOrElse(
          throw bad(s"$ActionKey is dead-letter, but $TopicKey is not set", s".option(\"$TopicKey\", \"…\")."))
        DeadLetter(topic, perMinute, query.toString, sourcesOf(plan))
      case other => throw bad(s"$ActionKey is '$other', which is not a policy", "choose fail, dead-letter or drop.")
    }
  }

  private def sourcesOf(plan: SparkPlan): Map[String, ClientOptions] = plan.collect {
    case scan: RealTimeStreamScanExec =>
      val kafka = KafkaStream.clientParams(scan.stream).getOrElse(
        throw bad(
          s"$ActionKey is dead-letter, but the source ${scan.stream} is not Kafka",
          "read from Kafka, or choose drop."))
      val options = ClientOptions.ofSource(kafka)
      // For topics that appear later.
      KafkaStream.offsetsIn(scan.start).keys.map(_._1 -> options).toSeq :+ ("" -> options)
  }.flatten.toMap

  private def bad(problem: String, fix: String) = new TailraceException("TAILRACE_BAD_ERROR_POLICY", s"$problem.", fix)
}
