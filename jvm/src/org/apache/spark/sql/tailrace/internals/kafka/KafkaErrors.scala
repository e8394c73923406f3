package org.apache.spark.sql.tailrace.internals.kafka

import java.util.concurrent.ExecutionException

import org.apache.spark.sql.tailrace.internals.names.ByName

/** Failures of Kafka's client, told apart by the names of their classes. */
object KafkaErrors extends ByName {
  private val Errors = "org.apache.kafka.common.errors"
  private val interrupt = classNamed(s"$Errors.InterruptException")
  private val recordTooLarge = classNamed(s"$Errors.RecordTooLargeException")
  private val unknownTopic = classNamed(s"$Errors.UnknownTopicOrPartitionException")
  private val timeout = classNamed(s"$Errors.TimeoutException")
  private val general = classNamed("org.apache.kafka.common.KafkaException")

  def isInterrupt(failure: Throwable): Boolean = interrupt.isClassOf(failure)
  def isRecordTooLarge(failure: Throwable): Boolean = recordTooLarge.isClassOf(failure)
  def isUnknownTopic(failure: Throwable): Boolean = unknownTopic.isClassOf(failure)

  def isTimeout(failure: Throwable): Boolean =
    isTimeoutItself(failure) || causeOf(failure).exists(isTimeoutItself)

  private def isTimeoutItself(failure: Throwable): Boolean =
    failure.isInstanceOf[java.util.concurrent.TimeoutException] || timeout.isClassOf(failure)

  /** What a failure only wraps; none if it says something itself. */
  def causeOf(failure: Throwable): Option[Throwable] =
    Option(failure.getCause).filter(_ => failure.isInstanceOf[ExecutionException] || general.isClassOf(failure))
}
