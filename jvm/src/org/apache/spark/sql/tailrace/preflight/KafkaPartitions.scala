package org.apache.spark.sql.tailrace.preflight

import org.apache.spark.sql.connector.read.streaming.MicroBatchStream
import org.apache.spark.sql.tailrace.internals.kafka.{KafkaAdmin, KafkaErrors, KafkaStream}

/** Asks a Kafka source's brokers, with the source's own options and a short time-out, for its number of partitions. */
private[preflight] object KafkaPartitions {
  private val GiveUpAfterMs = 4000L

  /** The partitions in the form of Kafka's client, or the problem. */
  def of(stream: MicroBatchStream): Either[SourceProblem, Set[AnyRef]] = KafkaStream.clientParams(stream) match {
    case None => Left(SourceProblem("unknown", "this version of the Kafka connector is not known to Tailrace"))
    case Some(params) =>
      try Right(KafkaStream.partitionsOf(stream, KafkaAdmin.impatient(params, "tailrace-check", GiveUpAfterMs)))
      catch {
        case failure: Exception => Left(problemOf(failure))
      }
  }

  private def problemOf(failure: Throwable): SourceProblem = KafkaErrors.causeOf(failure) match {
    case Some(cause) => problemOf(cause)
    case None if KafkaErrors.isTimeout(failure) => SourceProblem("unreachable", failure.getMessage)
    case None if KafkaErrors.isUnknownTopic(failure) => SourceProblem("no_topic", failure.getMessage)
    case None => SourceProblem("refused", Option(failure.getMessage).getOrElse(failure.toString))
  }
}
