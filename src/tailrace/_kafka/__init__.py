"""How to reach a Kafka cluster: Java client properties, and the same for librdkafka, which our own clients use."""
