package org.apache.spark.sql.tailrace.preflight

import java.util.{HashMap => JHashMap, Map => JMap}
import java.util.concurrent.{ExecutionException, TimeoutException}

import scala.language.reflectiveCalls

import org.apache.spark.sql.connector.read.streaming.MicroBatchStream
import org.apache.spark.sql.tailrace.internals.KafkaStream

/** How many partitions a Kafka source has now, asked of its brokers with the source's own options, and not for long. */
private[preflight] object KafkaPartitions {
  private val GiveUpAfterMs = "4000"

  private type Strategy = {
    def createAdmin(params: JMap[String, Object]): AutoCloseable
  }

  /** The partitions as Kafka's client has them, or what was in the way. */
  def of(stream: MicroBatchStream): Either[KafkaProblem, Set[Object]] = KafkaStream.clientParams(stream) match {
    case None => Left(KafkaProblem("unknown", "this version of the Kafka connector is not known to Tailrace"))
    case Some(params) => ask(stream, params)
  }

  private def ask(stream: MicroBatchStream, params: JMap[String, Object]): Either[KafkaProblem, Set[Object]] =
    try {
      val patient = new JHashMap[String, Object](params)
      patient.put("default.api.timeout.ms", GiveUpAfterMs)
      patient.put("request.timeout.ms", GiveUpAfterMs)
      patient.put("client.id", "tailrace-check")
      val strategy = KafkaStream.consumerStrategy(stream)
      val admin = strategy.asInstanceOf[Strategy].createAdmin(patient)
      try {
        val assigned = strategy.getClass.getMethods.find(_.getName == "assignedTopicPartitions").get
        assigned.setAccessible(true)
        Right(assigned.invoke(strategy, admin).asInstanceOf[Set[Object]])
      } finally admin.close()
    } catch {
      case failure: Exception => Left(problemOf(failure))
    }

  private def problemOf(failure: Throwable): KafkaProblem = failure match {
    case wrapped @ (_: ExecutionException | _: java.lang.reflect.InvocationTargetException)
        if wrapped.getCause != null =>
      problemOf(wrapped.getCause)
    case _: TimeoutException => KafkaProblem("unreachable", failure.getMessage)
    case _ if failure.getClass.getSimpleName == "UnknownTopicOrPartitionException" =>
      KafkaProblem("no_topic", failure.getMessage)
    case _ if failure.getClass.getSimpleName == "TimeoutException" => KafkaProblem("unreachable", failure.getMessage)
    case _ if failure.getClass.getSimpleName == "KafkaException" && failure.getCause != null =>
      problemOf(failure.getCause)
    case _ => KafkaProblem("refused", Option(failure.getMessage).getOrElse(failure.toString))
  }
}

/** @param kind `unreachable` (nobody answers in time), `no_topic`, `refused` or `unknown` */
private[preflight] final case class KafkaProblem(kind: String, message: String)
