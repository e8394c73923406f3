/**
 * The few types of Kafka's client that the plugin names. They are compiled against and left out of the jar: at run time
 * the user's own client brings the real ones, so that the plugin is built without a network and runs with any version.
 */
package org.apache.kafka {

  package common {
    final class TopicPartition(topicName: String, number: Int) {
      def topic(): String = topicName
      def partition(): Int = number
    }

    final class PartitionInfo {
      def partition(): Int = 0
    }

    package header {
      trait Header {
        def key(): String
        def value(): Array[Byte]
      }

      trait Headers {
        def lastHeader(key: String): Header
        def toArray(): Array[Header]
      }

      package internals {
        class RecordHeader(name: String, bytes: Array[Byte]) extends Header {
          override def key(): String = name
          override def value(): Array[Byte] = bytes
        }
      }
    }
  }

  package clients {
    import java.time.Duration
    import java.util.{Collection => JCollection, List => JList, Map => JMap}

    import org.apache.kafka.common.{PartitionInfo, TopicPartition}
    import org.apache.kafka.common.header.{Header, Headers}

    package producer {
      import java.util.concurrent.Future

      trait Callback {
        def onCompletion(metadata: RecordMetadata, exception: Exception): Unit
      }

      final class RecordMetadata {
        def topic(): String = ""
        def partition(): Int = 0
        def offset(): Long = 0L
      }

      class ProducerRecord[K, V](
          val topic: String,
          val partition: Integer,
          val key: K,
          val value: V,
          val headers: java.lang.Iterable[Header])

      class KafkaProducer[K, V](val settings: JMap[String, Object]) {
        def initTransactions(): Unit = ()
        def beginTransaction(): Unit = ()
        def commitTransaction(): Unit = ()
        def abortTransaction(): Unit = ()
        def send(record: ProducerRecord[K, V], callback: Callback): Future[RecordMetadata] = null
        def flush(): Unit = ()
        def close(timeout: Duration): Unit = ()
      }
    }

    package consumer {
      class ConsumerRecord[K, V](name: K, content: V) {
        def topic(): String = ""
        def partition(): Int = 0
        def offset(): Long = 0L
        def key(): K = name
        def value(): V = content
        def headers(): Headers = null
      }

      class ConsumerRecords[K, V] extends java.lang.Iterable[ConsumerRecord[K, V]] {
        override def iterator(): java.util.Iterator[ConsumerRecord[K, V]] = null
      }

      class KafkaConsumer[K, V](val settings: JMap[String, Object]) {
        def partitionsFor(topic: String): JList[PartitionInfo] = null
        def endOffsets(partitions: JCollection[TopicPartition]): JMap[TopicPartition, java.lang.Long] = null
        def beginningOffsets(partitions: JCollection[TopicPartition]): JMap[TopicPartition, java.lang.Long] = null
        def assign(partitions: JCollection[TopicPartition]): Unit = ()
        def seek(partition: TopicPartition, offset: Long): Unit = ()
        def position(partition: TopicPartition): Long = 0L
        def poll(timeout: Duration): ConsumerRecords[K, V] = null
        def close(timeout: Duration): Unit = ()
      }
    }
  }
}
