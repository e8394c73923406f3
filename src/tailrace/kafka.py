"""Kafka for tests and demos: an embedded broker that is the real Apache Kafka, and its topics."""

from tailrace._broker.admin import create_topics, delete_topics, require_broker
from tailrace._broker.embedded import EmbeddedKafka
from tailrace._broker.security import KafkaSecurity, Login
from tailrace._kafka.cluster import KafkaCluster
from tailrace._process.ports import free_port

__all__ = [
    "EmbeddedKafka",
    "KafkaCluster",
    "KafkaSecurity",
    "Login",
    "create_topics",
    "delete_topics",
    "free_port",
    "require_broker",
]
