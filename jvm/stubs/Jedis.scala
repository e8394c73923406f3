/**
 * The few types of Jedis that the plugin names, compiled against and left out of the jar like those of Kafka's client.
 * No static method is among them, because Scala has none: the plugin implements Jedis' interfaces instead of calling
 * its builders.
 */
package redis.clients.jedis {
  import javax.net.ssl.{SSLParameters, SSLSocketFactory}

  package args {
    trait Rawable {
      def getRaw(): Array[Byte]
    }
  }

  package commands {
    trait ProtocolCommand extends args.Rawable
  }

  package exceptions {
    class JedisException(message: String) extends RuntimeException(message)
    class JedisConnectionException(message: String) extends JedisException(message)
  }

  final class HostAndPort(host: String, port: Int) {
    override def toString: String = s"$host:$port"
  }

  /** Everything has a default that Jedis brings. */
  trait JedisClientConfig {
    def getConnectionTimeoutMillis(): Int
    def getSocketTimeoutMillis(): Int
    def getUser(): String
    def getPassword(): String
    def getDatabase(): Int
    def getClientName(): String
    def isSsl(): Boolean
    def getSslSocketFactory(): SSLSocketFactory
    def getSslParameters(): SSLParameters
  }

  class Connection(address: HostAndPort, config: JedisClientConfig) {
    override def toString: String = s"$address $config"
    def sendCommand(command: commands.ProtocolCommand, arguments: Array[Array[Byte]]): Unit = ()
    def getOne(): AnyRef = null
    def forceDisconnect(): Unit = ()
    def close(): Unit = ()
  }
}
