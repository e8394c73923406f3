"""The embedded Kafka broker: one KRaft node on 127.0.0.1, in its own JVM."""
