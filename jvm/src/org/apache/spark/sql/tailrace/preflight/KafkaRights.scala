package org.apache.spark.sql.tailrace.preflight

import java.util.{Map => JMap}

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import org.apache.spark.internal.Logging
import org.apache.spark.sql.tailrace.internals.kafka.{
  ClientOptions, KafkaAdmin, KafkaErrors, KafkaRefusal, KafkaRefusals, Wanted
}

/**
 * Asks the brokers whether the user may do what the query will do. No record is read, and none is written.
 *
 * Only of a secured cluster: without authentication there is nobody to give rights to.
 */
private[preflight] object KafkaRights extends Logging {
  private val GiveUpAfterMs = 8000L

  /** @param transactionalId one of those that the query will use */
  def problems(
      options: ClientOptions,
      wanted: Seq[Wanted],
      transactionalId: Option[String] = None): Seq[KafkaRefusal] =
    if (!isSecured(options.kafka)) Nil
    else problems(options.consumer(readCommitted = false), options.kafka, wanted, transactionalId)

  /** @param params of the query's own client, with what Spark has added */
  def problems(params: JMap[String, Object], wanted: Seq[Wanted]): Seq[KafkaRefusal] = {
    val settings = params.asScala.map { case (key, value) => key -> String.valueOf(value) }.toMap
    if (isSecured(settings)) problems(params, settings, wanted, None) else Nil
  }

  private def isSecured(settings: Map[String, String]): Boolean =
    settings.get("security.protocol").exists(protocol => !protocol.trim.equalsIgnoreCase("PLAINTEXT"))

  private def problems(
      params: JMap[String, Object],
      settings: Map[String, String],
      wanted: Seq[Wanted],
      transactionalId: Option[String]): Seq[KafkaRefusal] =
    try {
      val admin = KafkaAdmin.open(KafkaAdmin.impatient(params, "tailrace-check", GiveUpAfterMs))
      try ofTopics(admin, settings, wanted) ++ transactionalId.toSeq.flatMap(ofTransactions(admin, settings, _))
      finally admin.close()
    } catch {
      case NonFatal(failure) => KafkaRefusals.of(failure, settings).toSeq
    }

  private def ofTopics(admin: KafkaAdmin, settings: Map[String, String], wanted: Seq[Wanted]): Seq[KafkaRefusal] = {
    val allowed = admin.allowedOperations(wanted.map(_.name).distinct, GiveUpAfterMs)
    wanted.flatMap(one =>
      allowed(one.name) match {
        case Right(operations) =>
          Option.when(operations.nonEmpty && !operations(one.operation.toUpperCase))(KafkaRefusals.missing(
            one,
            settings))
        case Left(failure) => KafkaRefusals.of(failure, settings, one)
      }).distinct
  }

  private def ofTransactions(admin: KafkaAdmin, settings: Map[String, String], id: String): Option[KafkaRefusal] =
    try {
      admin.requireVisibleTransaction(id, GiveUpAfterMs)
      None
    } catch {
      // A coordinator that is not up yet, or a transaction that does not exist: neither is about rights.
      case NonFatal(failure) if KafkaErrors.isTimeout(failure) => None
      case NonFatal(failure) => KafkaRefusals.of(failure, settings)
    }
}
