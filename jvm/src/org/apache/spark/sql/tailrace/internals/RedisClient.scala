package org.apache.spark.sql.tailrace.internals

import java.io.{ByteArrayInputStream, IOException}
import java.nio.charset.StandardCharsets.UTF_8
import java.security.KeyStore
import java.security.cert.CertificateFactory
import javax.net.ssl.{SSLContext, SSLParameters, SSLSocketFactory, TrustManagerFactory}

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import _root_.redis.clients.jedis.{Connection, HostAndPort, JedisClientConfig}
import _root_.redis.clients.jedis.commands.ProtocolCommand
import _root_.redis.clients.jedis.exceptions.{JedisConnectionException, JedisException}

import tailrace.TailraceException

/** An answer of Redis that is an error. Its first word is Redis' code, such as WRONGTYPE. */
private[tailrace] final class RedisError(message: String) extends RuntimeException(message) {
  val code: String = message.takeWhile(_ != ' ')
}

/** The server does not answer, or not any more. */
private[tailrace] final class RedisUnreachable(reason: String, cause: Throwable) extends IOException(reason, cause)

/** @param ca certificates in PEM form; none for those that Java trusts */
private[tailrace] final case class RedisAddress(
    host: String,
    port: Int,
    database: Int,
    user: Option[String],
    password: Option[String],
    tls: Boolean,
    ca: Option[String]) {

  def connect(): RedisConnection =
    try RedisClient.connect(this)
    catch {
      case _: NoClassDefFoundError =>
        throw new TailraceException(
          "TAILRACE_NO_REDIS_CLIENT",
          "Jedis, the client for Redis, is not on Spark's class path.",
          "tailrace.configure(builder, redis_client=True), or name the jars of redis.clients:jedis in spark.jars.")
    }
}

/** A connection to Redis. Not for several threads, except for `abort`. */
private[tailrace] final class RedisConnection(connection: Connection) {
  import RedisClient.{reported, Command}
  import RedisValues._

  /** The answer to a command: a number, bytes, a list of answers, or null. */
  def call(command: String, arguments: Array[Byte]*): AnyRef = reported {
    connection.sendCommand(new Command(command), arguments.toArray)
    connection.getOne()
  }

  def text(command: String, arguments: String*): String = textOf(call(command, arguments.map(bytesOf): _*))

  /** Runs a script that changes the keys only as a whole. */
  def run(script: RedisScript, keys: Seq[Array[Byte]], arguments: Seq[Array[Byte]]): AnyRef = {
    val rest = bytesOf(keys.length.toString) +: (keys ++ arguments)
    try call("EVALSHA", script.sha +: rest: _*)
    catch {
      // A server that was restarted has forgotten it, and learns it again by this.
      case failure: RedisError if failure.code == "NOSCRIPT" => call("EVAL", bytesOf(script.text) +: rest: _*)
    }
  }

  /** From another thread: ends what is under way. */
  def abort(): Unit =
    try connection.forceDisconnect()
    catch { case _: IOException => }

  def close(): Unit =
    try connection.close()
    catch { case _: JedisException => }
}

private[tailrace] final case class RedisScript(text: String) {
  val sha: Array[Byte] = {
    val digest = java.security.MessageDigest.getInstance("SHA-1").digest(RedisValues.bytesOf(text))
    RedisValues.bytesOf(java.util.HexFormat.of().formatHex(digest))
  }
}

/** What commands and answers are made of. Without Jedis, which a session need not have. */
private[tailrace] object RedisValues {
  def bytesOf(text: String): Array[Byte] = text.getBytes(UTF_8)

  def textOf(answer: AnyRef): String = answer match {
    case bytes: Array[Byte] => new String(bytes, UTF_8)
    case null => ""
    case other => other.toString
  }

  def listOf(answer: AnyRef): Seq[AnyRef] = answer match {
    case list: java.util.List[_] => list.asScala.toSeq.asInstanceOf[Seq[AnyRef]]
    case _ => Nil
  }
}

/** Jedis, by as little of it as possible. Users bring it, and only those who write to Redis. */
private[tailrace] object RedisClient {
  import RedisValues.bytesOf

  private val ConnectMs = 5000
  // Longer than a pause of the server. What is sent again after that is recognized.
  private val AnswerMs = 20000

  def connect(address: RedisAddress): RedisConnection =
    reported(new RedisConnection(new Connection(new HostAndPort(address.host, address.port), configOf(address))))

  /** Jedis wraps what has happened, and names the address again. */
  private def reasonOf(cause: Throwable): String = {
    val chain = Iterator.iterate(cause)(_.getCause).takeWhile(_ != null).take(10).toSeq
    val causes = chain ++ chain.flatMap(_.getSuppressed.toSeq)
    val words = mutable.LinkedHashSet.from(causes.filterNot(_.isInstanceOf[JedisException]).map(shown))
    if (words.isEmpty) shown(cause) else words.mkString(", ")
  }

  private def shown(failure: Throwable): String = Option(failure.getMessage).getOrElse(failure.getClass.getSimpleName)

  private[internals] def reported[T](work: => T): T =
    try work
    catch {
      case failure: JedisConnectionException => throw new RedisUnreachable(reasonOf(failure), failure)
      case failure: JedisException => throw new RedisError(shown(failure))
    }

  private[internals] final class Command(name: String) extends ProtocolCommand {
    override def getRaw(): Array[Byte] = bytesOf(name)
  }

  private def configOf(address: RedisAddress): JedisClientConfig = new JedisClientConfig {
    override def getConnectionTimeoutMillis(): Int = ConnectMs
    override def getSocketTimeoutMillis(): Int = AnswerMs
    override def getUser(): String = address.user.orNull
    override def getPassword(): String = address.password.orNull
    override def getDatabase(): Int = address.database
    override def getClientName(): String = null
    override def isSsl(): Boolean = address.tls
    override def getSslSocketFactory(): SSLSocketFactory = address.ca.map(trusting).orNull
    override def getSslParameters(): SSLParameters = {
      val parameters = new SSLParameters
      // The certificate must be that of the host, as with HTTPS.
      parameters.setEndpointIdentificationAlgorithm("HTTPS")
      parameters
    }
  }

  private def trusting(pem: String): SSLSocketFactory = {
    val store = KeyStore.getInstance(KeyStore.getDefaultType)
    store.load(null, null)
    val certificates =
      CertificateFactory.getInstance("X.509").generateCertificates(new ByteArrayInputStream(bytesOf(pem)))
    certificates.asScala.zipWithIndex.foreach { case (certificate, number) =>
      store.setCertificateEntry(number.toString, certificate)
    }
    val trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm)
    trust.init(store)
    val context = SSLContext.getInstance("TLS")
    context.init(null, trust.getTrustManagers, null)
    context.getSocketFactory
  }
}
