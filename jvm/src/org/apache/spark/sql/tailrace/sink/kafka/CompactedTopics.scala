package org.apache.spark.sql.tailrace.sink.kafka

import scala.util.Try

import org.apache.spark.internal.Logging
import org.apache.spark.sql.tailrace.internals.kafka.{ClientOptions, KafkaAdmin}

/** Finds the topics that Kafka compacts. */
private[kafka] object CompactedTopics extends Logging {
  private val AnswersWithinS = 30L

  /** Empty if the user may not describe the topics. */
  def among(options: ClientOptions, topics: Iterable[String]): Set[String] =
    if (topics.isEmpty) Set.empty
    else Try(ask(options, topics.toSeq)).recover { case failure =>
      logInfo(s"Could not find out whether output topics are compacted: $failure")
      Set.empty[String]
    }.get

  private def ask(options: ClientOptions, topics: Seq[String]): Set[String] = {
    val admin = KafkaAdmin.open(options.consumer(readCommitted = false))
    try admin.cleanupPolicies(topics, AnswersWithinS).collect {
        case (topic, policy) if policy.contains("compact") => topic
      }.toSet
    finally admin.close()
  }
}
