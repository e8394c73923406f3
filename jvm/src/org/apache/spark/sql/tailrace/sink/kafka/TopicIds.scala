package org.apache.spark.sql.tailrace.sink.kafka

import java.util.concurrent.TimeoutException

import org.apache.spark.sql.tailrace.internals.kafka.{ClientOptions, KafkaAdmin}

import tailrace.TailraceException

/**
 * The ids of topics. Kafka gives each topic one when it is created, so a topic that was deleted and created again, or
 * that is on another cluster, has another id. Offsets that were noted for the old one mean nothing in the new one.
 */
private[kafka] object TopicIds {

  /** A broker before Kafka 2.8 has no ids, and a user may not be allowed to ask. */
  val Unknown = ""

  private val NoId = "AAAAAAAAAAAAAAAAAAAAAA"
  private val AnswersWithinS = 60L

  /** By topic. */
  def of(options: ClientOptions, topics: Iterable[String]): Map[String, String] =
    if (topics.isEmpty) Map.empty
    else {
      val admin = KafkaAdmin.open(options.consumer(readCommitted = false))
      try admin.topicIds(topics.toSeq, AnswersWithinS).filterNot(_._2 == NoId)
      catch { case _: TimeoutException => throw noAnswer(topics) }
      finally admin.close()
    }

  /** The id of one of these topics. */
  def in(ids: Map[String, String], topic: String): String = ids.getOrElse(topic, Unknown)

  /** False only if both are known. */
  def mayBeSame(one: String, other: String): Boolean = one == other || one == Unknown || other == Unknown

  private def noAnswer(topics: Iterable[String]) = new TailraceException(
    "TAILRACE_OUTPUT_NOT_READABLE",
    s"the brokers did not describe the output topics ${topics.mkString(", ")} within $AnswersWithinS s.",
    "check that the brokers are up, and that this user may describe the topics.")
}
