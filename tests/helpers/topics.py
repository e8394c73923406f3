"""Writes and reads the records of a topic, with a client that is not Spark's."""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, Producer, TopicPartition

from tailrace.errors import BrokerError
from tailrace.kafka import create_topics, delete_topics
from tests.helpers.waiting import until


def new_topic(bootstrap_servers: str, name: str, *, partitions: int = 2) -> str:
    topic = f"{name}-{uuid.uuid4().hex[:8]}"
    create_topics(bootstrap_servers, [topic], partitions=partitions)
    return topic


def create_again(bootstrap_servers: str, topic: str, *, partitions: int = 2) -> None:
    """Delete a topic and create it under the same name."""
    assert delete_topics(bootstrap_servers, [topic]) == []

    def created() -> bool:
        try:
            create_topics(bootstrap_servers, [topic], partitions=partitions)
        except BrokerError:
            return False  # its deletion is under way
        return True

    until(created, "the topic is there again")


def produce(bootstrap_servers: str, topic: str, rows: Iterable[dict[str, Any]], *, key: str = "key") -> None:
    """Send rows as JSON, each with the time it was sent, spread over partitions by their key."""
    producer = Producer({"bootstrap.servers": bootstrap_servers, "linger.ms": 0})
    for row in rows:
        value = json.dumps({**row, "sent_ns": time.time_ns()})
        producer.produce(topic, key=str(row.get(key, "")).encode(), value=value.encode())
        producer.poll(0)
    assert producer.flush(20) == 0


@dataclass
class Collected:
    """A row from a topic, and when it was read."""

    row: dict[str, Any]
    at_ns: int

    @property
    def latency_s(self) -> float:
        return float((self.at_ns - self.row["sent_ns"]) / 1e9)


@dataclass
class Collector:
    """Reads a topic from its beginning in the background."""

    bootstrap_servers: str
    topic: str
    partitions: int = 2
    collected: list[Collected] = field(default_factory=list)

    def __enter__(self) -> Collector:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_failure: object) -> None:
        self._stop.set()
        self._thread.join()

    def rows(self) -> list[dict[str, Any]]:
        return [collected.row for collected in list(self.collected)]

    def _run(self) -> None:
        consumer = Consumer(
            {"bootstrap.servers": self.bootstrap_servers, "group.id": uuid.uuid4().hex, "enable.auto.commit": False}
        )
        consumer.assign([TopicPartition(self.topic, number, 0) for number in range(self.partitions)])
        while not self._stop.is_set():
            for message in consumer.consume(500, 0.02):
                value = message.value()
                if not message.error() and value is not None:
                    self.collected.append(Collected(json.loads(value), time.time_ns()))
        consumer.close()


def all_messages(bootstrap_servers: str, topic: str, *, committed: bool = False, partitions: int = 2) -> list[Message]:
    """Everything that is in a topic now."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": uuid.uuid4().hex,
            "enable.partition.eof": True,
            "isolation.level": "read_committed" if committed else "read_uncommitted",
        }
    )
    consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(partitions)])
    found: list[Message] = []
    at_end: set[int | None] = set()
    while len(at_end) < partitions:
        for message in consumer.consume(500, 0.1):
            problem = message.error()
            if problem is None:
                found.append(message)
            else:
                assert problem.code() == KafkaError._PARTITION_EOF
                at_end.add(message.partition())
    consumer.close()
    return found


def headers_of(message: Message) -> dict[str, str]:
    headers: list[tuple[str, bytes]] = message.headers() or []  # type: ignore[assignment]
    return {key: value.decode() for key, value in headers}


@dataclass
class ContinuousLoad:
    """Sends numbered rows in the background until it is stopped."""

    bootstrap_servers: str
    topic: str
    per_second: int
    keys: int = 10
    sent: int = 0

    def __enter__(self) -> ContinuousLoad:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_failure: object) -> None:
        self.stop()

    def stop(self) -> None:
        """When this returns, everything that was sent is in the topic."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap_servers, "linger.ms": 0})
        while not self._stop.wait(1 / self.per_second):
            row = {"id": self.sent, "key": f"k{self.sent % self.keys}", "sent_ns": time.time_ns()}
            # By the id: rows of one key come from all partitions.
            producer.produce(self.topic, key=str(self.sent).encode(), value=json.dumps(row).encode())
            producer.poll(0)
            self.sent += 1
        assert producer.flush(20) == 0
