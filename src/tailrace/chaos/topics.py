"""Reads topics with a client that is not Spark's: live while the queries run, and whole at the end."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewPartitions

from tailrace._broker.admin import SILENT
from tailrace._kafka.cluster import Servers, client_settings
from tailrace.errors import TailraceError

READ_WITHIN_S = 120
COMPACTED_TOPIC = {"cleanup.policy": "compact", "segment.ms": "2000", "min.cleanable.dirty.ratio": "0.01"}


@dataclass(frozen=True)
class Read:
    """One record as it lies in its topic."""

    partition: int
    key: bytes | None
    value: bytes
    offset: int = 0
    timestamp_ms: int = 0


def new_reader(bootstrap_servers: Servers) -> Consumer:
    return Consumer(
        client_settings(
            bootstrap_servers,
            {
                "group.id": f"tailrace-chaos-{uuid.uuid4().hex}",
                "enable.auto.commit": False,
                # What a transaction has written counts when it is committed, as for any careful reader.
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "reconnect.backoff.max.ms": 500,
                "fetch.wait.max.ms": 50,
                "log_level": 0,
            },
        ),
        logger=SILENT,
    )


def beginnings(reader: Consumer, topics: Iterable[str]) -> list[TopicPartition]:
    described = {topic: reader.list_topics(topic, timeout=30).topics[topic].partitions for topic in topics}
    return [TopicPartition(topic, number, 0) for topic, partitions in described.items() for number in partitions]


def read_all(bootstrap_servers: Servers, topic: str) -> list[Read]:
    """Everything that is in a topic now, each partition in its order."""
    reader = new_reader(bootstrap_servers)
    try:
        waiting = beginnings(reader, [topic])
        reader.assign(waiting)
        at_end: set[int] = set()
        found = []
        deadline = time.monotonic() + READ_WITHIN_S
        while len(at_end) < len(waiting):
            for message in reader.consume(1000, 0.2):
                error, partition = message.error(), message.partition()
                assert partition is not None
                if error is not None and error.code() == KafkaError._PARTITION_EOF:
                    at_end.add(partition)
                elif error is None:
                    at_ms = message.timestamp()[1]
                    found.append(Read(partition, message.key(), message.value() or b"", message.offset() or 0, at_ms))
            if time.monotonic() > deadline:
                raise TailraceError(
                    "TAILRACE_HARNESS_FAILED",
                    f"the topic '{topic}' could not be read to its end within {READ_WITHIN_S} s.",
                    "check that the broker runs.",
                )
        return found
    finally:
        reader.close()


def partitions_of(bootstrap_servers: Servers, topic: str) -> int:
    admin = AdminClient(client_settings(bootstrap_servers, {"log_level": 0}), logger=SILENT)
    return len(admin.list_topics(topic, timeout=30).topics[topic].partitions)


def compact(bootstrap_servers: Servers, topics: Iterable[str]) -> None:
    """Let the broker compact topics as soon as it can: all but the newest seconds keep one record of each key."""
    wanted = [(ResourceType.TOPIC, topic, name, value) for topic in topics for name, value in COMPACTED_TOPIC.items()]
    if not wanted:
        return
    # Otherwise the cleaner looks every 15 seconds.
    admin = AdminClient(client_settings(bootstrap_servers, {"log_level": 0}), logger=SILENT)
    for broker in admin.list_topics(timeout=30).brokers:
        wanted.append((ResourceType.BROKER, str(broker), "log.cleaner.backoff.ms", "1000"))
    resources: dict[tuple[ResourceType, str], list[ConfigEntry]] = {}
    for kind, owner, name, value in wanted:
        entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        resources.setdefault((kind, owner), []).append(entry)
    changes = [ConfigResource(kind, owner, incremental_configs=entries) for (kind, owner), entries in resources.items()]
    for change in admin.incremental_alter_configs(changes).values():
        change.result(timeout=30)


def add_partition(bootstrap_servers: Servers, topic: str) -> int:
    """One partition more; gives their number when it can be written to."""
    admin = AdminClient(client_settings(bootstrap_servers, {"log_level": 0}), logger=SILENT)
    wanted = len(admin.list_topics(topic, timeout=30).topics[topic].partitions) + 1
    admin.create_partitions([NewPartitions(topic, wanted)])[topic].result(timeout=30)
    deadline = time.monotonic() + READ_WITHIN_S
    while time.monotonic() < deadline:
        partitions = admin.list_topics(topic, timeout=30).topics[topic].partitions
        if len(partitions) == wanted and all(partition.leader >= 0 for partition in partitions.values()):
            return wanted
        time.sleep(0.1)
    raise TailraceError("TAILRACE_HARNESS_FAILED", f"'{topic}' got no partition more.", "look at the broker's log.")
