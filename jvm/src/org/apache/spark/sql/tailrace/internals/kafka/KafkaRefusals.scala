package org.apache.spark.sql.tailrace.internals.kafka

import scala.util.control.NonFatal

import org.apache.spark.sql.tailrace.internals.names.ByName

import tailrace.TailraceException

/** Why a cluster does not let a client in, or does not let it do something. */
final case class KafkaRefusal(code: String, problem: String, fix: String) {
  def error(cause: Throwable): TailraceException = {
    val made = new TailraceException(code, problem, fix)
    if (cause != null) made.initCause(cause)
    made
  }
}

/** Passwords, certificates and rights; the same codes as in `tailrace/_kafka/refusals.py`. */
object KafkaRefusals extends ByName {
  private val Errors = "org.apache.kafka.common.errors"
  private val MaxCauses = 20
  private val MaxReason = 300
  private val logins = Seq("SaslAuthenticationException", "UnsupportedSaslMechanismException").map(name =>
    classNamed(s"$Errors.$name"))
  private val tls = classNamed(s"$Errors.SslAuthenticationException")
  private val ofTopics = classNamed(s"$Errors.TopicAuthorizationException")
  private val unauthorizedTopics = method(ofTopics.className, "unauthorizedTopics")
  private val ofGroup = classNamed(s"$Errors.GroupAuthorizationException")
  private val ofTransactionalId = classNamed(s"$Errors.TransactionalIdAuthorizationException")
  private val ofCluster = classNamed(s"$Errors.ClusterAuthorizationException")
  private val badConfig =
    Seq(s"$Errors.InvalidConfigurationException", "org.apache.kafka.common.config.ConfigException").map(classNamed)
  private val Expired = "(?i)CertificateExpired|certificate_expired|certificate has expired|NotAfter".r
  private val Untrusted =
    "(?i)PKIX path|CertPath|unknown_ca|subject alternative|No name matching".r

  /**
   * What a failure of Kafka's client says about passwords, certificates and rights; none for any other failure.
   *
   * @param settings of the client
   * @param wanted   what it was about to do
   */
  def of(failure: Throwable, settings: Map[String, String], wanted: Wanted = Wanted.unknown): Option[KafkaRefusal] = {
    val causes = Iterator.iterate(failure)(_.getCause).takeWhile(_ != null).take(MaxCauses).toList
    causes.flatMap(cause => one(cause, causes, settings, wanted)).headOption
  }

  /** Runs `work`, and gives its failure a code if it is a refusal. */
  def coded[T](settings: Map[String, String], wanted: Wanted = Wanted.unknown)(work: => T): T =
    try work
    catch {
      case coded: TailraceException => throw coded
      case NonFatal(failure) => throw of(failure, settings, wanted).fold(failure)(_.error(failure))
    }

  private def one(
      cause: Throwable,
      all: List[Throwable],
      settings: Map[String, String],
      wanted: Wanted): Option[KafkaRefusal] = {
    val servers = settings.getOrElse("bootstrap.servers", "the brokers")
    if (logins.exists(_.isClassOf(cause))) {
      Some(KafkaRefusal(
        "TAILRACE_KAFKA_LOGIN_REFUSED",
        s"the broker at $servers refuses the login: ${reason(cause)}",
        "check user, password and kafka.sasl.mechanism, and that the user exists on the cluster."))
    } else if (tls.isClassOf(cause)) {
      Some(ofTls(servers, all))
    } else if (ofTopics.isClassOf(cause)) {
      val named = unauthorizedTopics.call[java.util.Set[String]](cause)
      val topic = if (named.isEmpty) wanted.name else named.iterator().next()
      Some(missing(wanted.copy(kind = "topic", name = topic), settings))
    } else if (ofGroup.isClassOf(cause)) {
      Some(missing(Wanted("group", wanted.name, "Read"), settings))
    } else if (ofTransactionalId.isClassOf(cause)) {
      Some(missing(Wanted("transactional-id", Wanted.TransactionalIds, "Write"), settings))
    } else if (ofCluster.isClassOf(cause)) {
      Some(missing(Wanted("cluster", "", "IdempotentWrite"), settings))
    } else if (badConfig.exists(_.isClassOf(cause))) {
      Some(KafkaRefusal(
        "TAILRACE_BAD_KAFKA_CONFIG",
        s"Kafka's client cannot use the options of the query: ${reason(cause)}",
        "correct the kafka.* options: security.protocol, sasl.* and ssl.*."))
    } else None
  }

  private def ofTls(servers: String, causes: List[Throwable]): KafkaRefusal = {
    val text = causes.map(_.toString).mkString("; ")
    if (Expired.findFirstIn(text).isDefined) KafkaRefusal(
      "TAILRACE_KAFKA_CERTIFICATE_EXPIRED",
      s"a certificate on the way to $servers has expired: ${reason(causes.last)}",
      "renew the broker's certificate, or with mutual TLS the one in your key store.")
    else if (Untrusted.findFirstIn(text).isDefined) KafkaRefusal(
      "TAILRACE_KAFKA_CERTIFICATE_UNTRUSTED",
      s"the certificate of $servers is not trusted: ${reason(causes.last)}",
      "set kafka.ssl.truststore.location to the certificate of the authority that signed the broker's certificate, " +
        "and use a host name that is in it.")
    else KafkaRefusal(
      "TAILRACE_KAFKA_TLS_FAILED",
      s"no TLS connection to $servers: ${reason(causes.last)}",
      "check kafka.security.protocol and the port: does this listener speak TLS, and does it ask for a certificate?")
  }

  /** A right that is missing, with the command that grants it. */
  def missing(wanted: Wanted, settings: Map[String, String]): KafkaRefusal = {
    val user = settings.get("sasl.jaas.config").flatMap(User.findFirstMatchIn(_)).map(_.group(1)).getOrElse("…")
    val prefixed = wanted.name.endsWith("*")
    val pattern = if (prefixed) " --resource-pattern-type prefixed" else ""
    val resource =
      if (wanted.kind == "cluster") "--cluster" else s"--${wanted.kind} ${wanted.name.stripSuffix("*")}$pattern"
    val servers = settings.getOrElse("bootstrap.servers", "…")
    val why = if (wanted.why.isEmpty) "" else s", which ${wanted.why}"
    val named = if (wanted.name.isEmpty) s"the ${wanted.kind}" else s"the ${wanted.kind} '${wanted.name}'"
    val whose = if (user == "…") "this user" else s"the user '$user'"
    KafkaRefusal(
      "TAILRACE_KAFKA_ACL_MISSING",
      s"$whose lacks the right ${wanted.operation} on $named$why.",
      s"let an administrator grant it: kafka-acls.sh --bootstrap-server $servers --command-config admin.properties " +
        s"--add --allow-principal User:$user --operation ${wanted.operation} $resource")
  }

  private val User = "username\\s*=\\s*[\"']?([^\"';\\s]+)".r

  private def reason(failure: Throwable): String =
    Option(failure.getMessage).getOrElse(failure.toString).replaceAll("\\s+", " ").take(MaxReason)
}

/**
 * What a client needs a right for.
 *
 * @param kind `topic`, `group`, `transactional-id` or `cluster`
 * @param name of the resource; with `*` at its end, a prefix
 */
final case class Wanted(kind: String, name: String, operation: String, why: String = "")

object Wanted {
  val unknown: Wanted = Wanted("topic", "", "Describe")

  /** How the names of all transactions of this sink begin. */
  val TransactionalIds = "tailrace-*"
}
