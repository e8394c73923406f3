package org.apache.spark.sql.tailrace.preflight

import java.util.{Locale, UUID}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap
import org.apache.spark.sql.tailrace.errors.ErrorPolicy
import org.apache.spark.sql.tailrace.internals.kafka.{ClientOptions, KafkaRefusal, Wanted}
import org.apache.spark.sql.tailrace.sink.kafka.{SinkOptions, TailraceKafka, WriterIdentity}

/** The rights that a query's sink and its dead letters need on a secured cluster. */
private[preflight] object WriterRights {
  private val SparksOwn = "kafka"

  /** @param queryId of the checkpoint, if it has one */
  def problems(fields: WriterFields, queryId: Option[String]): Seq[PluginRefusal] = {
    val format = fields.format.toLowerCase(Locale.ROOT)
    val ofSink = if (Set(SparksOwn, TailraceKafka.Format)(format)) sink(fields, format, queryId) else Nil
    val ofLetters = deadLetters(fields).filterNot(ofSink.contains)
    ofSink.map(describe(s"sink ${fields.format}", _)) ++ ofLetters.map(describe("dead letters", _))
  }

  private def sink(fields: WriterFields, format: String, queryId: Option[String]): Seq[KafkaRefusal] = {
    val options = CaseInsensitiveMap(fields.options)
    val topic = options.get(SinkOptions.TopicKey).map(_.trim).filter(_.nonEmpty)
    val readsBack = "the sink needs to recognize what it has written before a failure"
    val wanted = topic.toSeq.flatMap { name =>
      Seq(Wanted("topic", name, "Write", "the query writes to")) ++
        Option.when(format == TailraceKafka.Format)(Wanted("topic", name, "Read", readsBack))
    }
    val transactional = format == TailraceKafka.Format && options.contains(SinkOptions.IntervalKey)
    val query = queryId.getOrElse(UUID.randomUUID().toString)
    val id = Option.when(transactional)(WriterIdentity.transactionalId(query, 0))
    KafkaRights.problems(access(fields, fields.options), wanted, id)
  }

  /** They go to the brokers of the record's own source. */
  private def deadLetters(fields: WriterFields): Seq[KafkaRefusal] = {
    val options = CaseInsensitiveMap(fields.options)
    val topic = options.get(ErrorPolicy.TopicKey).map(_.trim).filter(_.nonEmpty)
    if (!options.get(ErrorPolicy.ActionKey).exists(_.trim == "dead-letter") || topic.isEmpty) Nil
    else {
      val wanted = Seq(Wanted("topic", topic.get, "Write", "takes the query's dead letters"))
      fields.dataset.queryExecution.analyzed.collect { case source: StreamingRelationV2 =>
        source.extraOptions.asCaseSensitiveMap().asScala.toMap
      }.distinct.flatMap(source => KafkaRights.problems(access(fields, source), wanted)).distinct
    }
  }

  private def access(fields: WriterFields, options: Map[String, String]): ClientOptions =
    ClientOptions.ofQuery(options ++ CheckAccess.properties(fields.dataset.sparkSession).map { case (key, value) =>
      s"kafka.$key" -> value
    })

  private def describe(title: String, refusal: KafkaRefusal): PluginRefusal =
    PluginRefusal(refusal.code, title, refusal.problem, refusal.fix, None)
}
