package org.apache.spark.sql.tailrace.internals.kafka

import java.time.Duration
import java.util.{Arrays => JArrays, HashMap => JHashMap, Map => JMap, Set => JSet}
import java.util.concurrent.{ExecutionException, Future => JFuture, TimeoutException, TimeUnit}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.tailrace.internals.names.ByName

/**
 * Kafka's admin client. By name: it is made by a static method of an interface, which Scala cannot declare in a stub.
 */
private[tailrace] final class KafkaAdmin private (client: AnyRef) {
  import KafkaAdmin._

  /** Asks for the offset behind the last record of each partition; does not wait for the answer. */
  def newestOffsets(partitions: Set[AnyRef]): JFuture[JMap[AnyRef, AnyRef]] = {
    val request = partitions.map(_ -> latest.callStatic[AnyRef]()).toMap.asJava
    allOffsets.call(listOffsets.call[AnyRef](client, request))
  }

  /** A topic's setting `cleanup.policy`, for each of the topics. */
  def cleanupPolicies(topics: Seq[String], withinSeconds: Long): Map[String, String] = {
    val asked = JArrays.asList(topics.map(name => resource.make(topicResource.value, name)): _*)
    val answer = allConfigs.call[JFuture[JMap[AnyRef, AnyRef]]](describeConfigs.call[AnyRef](client, asked))
    answer.get(withinSeconds, TimeUnit.SECONDS).asScala.map { case (of, config) =>
      val entry = Option(entryOf.call[AnyRef](config, "cleanup.policy"))
      resourceName.call[String](of) -> entry.fold("")(valueOf.call[String](_))
    }.toMap
  }

  /** The id of each topic that exists and that the user may describe. */
  def topicIds(topics: Seq[String], withinSeconds: Long): Map[String, String] = {
    val asked = describeTopics.call[AnyRef](client, JArrays.asList(topics: _*))
    descriptions.call[JMap[String, JFuture[AnyRef]]](asked).asScala.flatMap { case (topic, answer) =>
      try Some(topic -> topicId.call[AnyRef](answer.get(withinSeconds, TimeUnit.SECONDS)).toString)
      catch {
        case failed: ExecutionException if KafkaErrors.isTimeout(failed.getCause) =>
          throw new TimeoutException(failed.getCause.getMessage)
        case _: ExecutionException => None
      }
    }.toMap
  }

  /** By topic, the operations that this user may do, if the brokers say; a failure if it may not even describe it. */
  def allowedOperations(topics: Seq[String], withinMs: Long): Map[String, Either[Throwable, Set[String]]] = {
    val including = includeOperations.call[AnyRef](describeOptions.make(), java.lang.Boolean.TRUE)
    val asked = describeTopicsWith.call[AnyRef](client, JArrays.asList(topics: _*), including)
    descriptions.call[JMap[String, JFuture[AnyRef]]](asked).asScala.map { case (topic, answer) =>
      topic -> (try {
        val found = Option(operations.call[JSet[AnyRef]](answer.get(withinMs, TimeUnit.MILLISECONDS)))
        Right(found.fold(Set.empty[String])(_.asScala.map(_.toString).toSet))
      } catch {
        case failed: ExecutionException => Left(failed.getCause)
        case late: TimeoutException => Left(late)
      })
    }.toMap
  }

  /** Fails if this user may not even know of such a transaction. */
  def requireVisibleTransaction(id: String, withinMs: Long): Unit = {
    val asked = describeTransactions.call[AnyRef](client, JArrays.asList(id))
    transaction.call[JFuture[AnyRef]](asked, id).get(withinMs, TimeUnit.MILLISECONDS)
  }

  /** Does not wait for what is under way. */
  def close(): Unit = closeWithin.call[AnyRef](client, Duration.ZERO)
}

private[tailrace] object KafkaAdmin extends ByName {
  private val Package = "org.apache.kafka.clients.admin"
  private val MapClass = "java.util.Map"
  private val create = method(s"$Package.Admin", "create", MapClass)
  private val closeWithin = method(s"$Package.Admin", "close", "java.time.Duration")
  private val listOffsets = method(s"$Package.Admin", "listOffsets", MapClass)
  private val describeConfigs = method(s"$Package.Admin", "describeConfigs", "java.util.Collection")
  private val describeTopics = method(s"$Package.Admin", "describeTopics", "java.util.Collection")
  private val describeTopicsWith =
    method(s"$Package.Admin", "describeTopics", "java.util.Collection", s"$Package.DescribeTopicsOptions")
  private val describeOptions = constructor(s"$Package.DescribeTopicsOptions")
  private val includeOperations = method(s"$Package.DescribeTopicsOptions", "includeAuthorizedOperations", "boolean")
  private val operations = method(s"$Package.TopicDescription", "authorizedOperations")
  private val describeTransactions = method(s"$Package.Admin", "describeTransactions", "java.util.Collection")
  private val transaction = method(s"$Package.DescribeTransactionsResult", "description", "java.lang.String")
  private val descriptions = method(s"$Package.DescribeTopicsResult", "topicNameValues")
  private val topicId = method(s"$Package.TopicDescription", "topicId")
  private val latest = method(s"$Package.OffsetSpec", "latest")
  private val allOffsets = method(s"$Package.ListOffsetsResult", "all")
  private val offset = method(s"$Package.ListOffsetsResult$$ListOffsetsResultInfo", "offset")
  private val allConfigs = method(s"$Package.DescribeConfigsResult", "all")
  private val entryOf = method(s"$Package.Config", "get", "java.lang.String")
  private val valueOf = method(s"$Package.ConfigEntry", "value")
  private val Resource = "org.apache.kafka.common.config.ConfigResource"
  private val resource = constructor(Resource, s"$Resource$$Type", "java.lang.String")
  private val resourceName = method(Resource, "name")
  private val topicResource = constant(s"$Resource$$Type", "TOPIC")

  def open(settings: JMap[String, Object]): KafkaAdmin = new KafkaAdmin(create.callStatic[AnyRef](settings))

  /** A client with these settings that gives up early. */
  def impatient(settings: JMap[String, Object], clientId: String, giveUpAfterMs: Long): JMap[String, Object] = {
    val own = new JHashMap[String, Object](settings)
    own.put("default.api.timeout.ms", giveUpAfterMs.toString)
    own.put("request.timeout.ms", giveUpAfterMs.toString)
    own.put("client.id", clientId)
    own
  }

  /** In an answer of [[KafkaAdmin.newestOffsets]]. */
  def offsetIn(info: AnyRef): Long = offset.call[java.lang.Long](info)
}
