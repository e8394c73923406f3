"""The embedded Kafka broker."""
