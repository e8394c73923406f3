package org.apache.spark.sql.tailrace.sink.kafka

import java.util.{Arrays => JArrays, Map => JMap}
import java.util.concurrent.{Future => JFuture, TimeUnit}

import scala.jdk.CollectionConverters._
import scala.language.reflectiveCalls
import scala.util.Try

import org.apache.spark.internal.Logging
import org.apache.spark.sql.tailrace.internals.kafka.ClientOptions

/** Which topics Kafka compacts. By name, as the plugin is built without Kafka's client. */
private[kafka] object CompactedTopics extends Logging {
  private type Described = { def all(): JFuture[JMap[Object, Object]] }
  private type Resource = { def name(): String }
  private type Config = { def get(name: String): Object }
  private type Entry = { def value(): String }
  private val Package = "org.apache.kafka"
  private val AnswersWithinS = 30L

  /** None of them where the user may not know. */
  def among(options: ClientOptions, topics: Iterable[String]): Set[String] =
    if (topics.isEmpty) Set.empty
    else Try(ask(options, topics.toSeq)).recover { case failure =>
      logInfo(s"It is not known whether output topics are compacted: $failure")
      Set.empty[String]
    }.get

  private def ask(options: ClientOptions, topics: Seq[String]): Set[String] = {
    def named(name: String): Class[_] =
      Class.forName(s"$Package.$name", true, Thread.currentThread().getContextClassLoader)
    val admin = named("clients.admin.Admin")
    val kind = named("common.config.ConfigResource$Type")
    val topic = kind.getField("TOPIC").get(null)
    val resource = named("common.config.ConfigResource").getConstructor(kind, classOf[String])
    val client: Object =
      admin.getMethod("create", classOf[JMap[_, _]]).invoke(null, options.consumer(readCommitted = false))
    try {
      val asked = JArrays.asList(topics.map(name => resource.newInstance(topic, name).asInstanceOf[Object]): _*)
      val answer = admin.getMethod("describeConfigs", classOf[java.util.Collection[_]]).invoke(client, asked)
      answer.asInstanceOf[Described].all().get(AnswersWithinS, TimeUnit.SECONDS).asScala.collect {
        case (of, config) if policyOf(config).contains("compact") => of.asInstanceOf[Resource].name()
      }.toSet
    } finally admin.getMethod("close", classOf[java.time.Duration]).invoke(client, java.time.Duration.ZERO)
  }

  private def policyOf(config: Object): String =
    Option(config.asInstanceOf[Config].get("cleanup.policy")).fold("")(_.asInstanceOf[Entry].value())
}
