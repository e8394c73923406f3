/**
 * The few types of Kafka's client that the plugin names. They are compiled against and left out of the jar: at run time
 * the user's own client brings the real ones, so that the plugin is built without a network and runs with any version.
 */
package org.apache.kafka.clients.producer

trait Callback {
  def onCompletion(metadata: RecordMetadata, exception: Exception): Unit
}

final class RecordMetadata
