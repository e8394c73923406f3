"""A query's stages from a topic, whose partitions the broker knows."""

from __future__ import annotations

from collections.abc import Sequence

from confluent_kafka.admin import AdminClient

from tailrace._broker.admin import require_broker
from tailrace._kafka.cluster import Servers, client_settings
from tailrace.check.description import QueryShape
from tailrace.size.by_hand import shape_by_hand
from tailrace.size.load import bad_size

ANSWERS_WITHIN_S = 10


def shape_of_topic(bootstrap_servers: Servers, topic: str, shuffle_partitions: Sequence[int] = ()) -> QueryShape:
    """As many readers as the topic has partitions, and a stage for each shuffle."""
    partitions = topic_partitions(bootstrap_servers, topic)
    return shape_by_hand([partitions, *shuffle_partitions], source=f"kafka: {topic}")


def topic_partitions(bootstrap_servers: Servers, topic: str) -> int:
    require_broker(bootstrap_servers)
    # Ask for all topics: asking for one by name may create it.
    topics = AdminClient(client_settings(bootstrap_servers)).list_topics(timeout=ANSWERS_WITHIN_S).topics
    if topic not in topics:
        raise bad_size(
            f"there is no topic '{topic}' on {bootstrap_servers}.",
            "check its name, or give the partitions by hand: --stages 8,20.",
        )
    return len(topics[topic].partitions)
