package org.apache.spark.sql.tailrace.preflight

import java.util.{Map => JMap}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.connector.read.streaming.MicroBatchStream
import org.apache.spark.sql.tailrace.internals.kafka.{KafkaAdmin, KafkaErrors, KafkaRefusals, KafkaStream, Wanted}

/** Asks a Kafka source's brokers, with the source's own options and a short time-out, for its number of partitions. */
private[preflight] object KafkaPartitions {
  private val GiveUpAfterMs = 4000L

  /** The settings of a client, with what the user of the check has set in their place. */
  type Overridden = JMap[String, Object] => JMap[String, Object]

  /**
   * The partitions in the form of Kafka's client, or the problem.
   *
   * @param subscribed the topics, as the query names them
   */
  def of(
      stream: MicroBatchStream,
      overridden: Overridden,
      subscribed: String): Either[SourceProblem, Set[AnyRef]] = KafkaStream.clientParams(stream) match {
    case None => Left(SourceProblem("unknown", "this version of the Kafka connector is not known to Tailrace"))
    case Some(own) =>
      val params = overridden(own)
      try Right(KafkaStream.partitionsOf(stream, KafkaAdmin.impatient(params, "tailrace-check", GiveUpAfterMs)))
      catch {
        case failure: Exception =>
          val settings = params.asScala.map { case (key, value) => key -> String.valueOf(value) }.toMap
          val refused = KafkaRefusals.of(failure, settings, Wanted("topic", subscribed, "Read", "the query reads"))
          Left(refused.fold(problemOf(failure))(SourceProblem.of))
      }
  }

  private def problemOf(failure: Throwable): SourceProblem = KafkaErrors.causeOf(failure) match {
    case Some(cause) => problemOf(cause)
    case None if KafkaErrors.isTimeout(failure) => SourceProblem("unreachable", failure.getMessage)
    case None if KafkaErrors.isUnknownTopic(failure) => SourceProblem("no_topic", failure.getMessage)
    case None => SourceProblem("refused", Option(failure.getMessage).getOrElse(failure.toString))
  }
}
