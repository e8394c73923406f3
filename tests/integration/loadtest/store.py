"""A store for load tests: the input topic itself, with a reader that does not see some records, and sees some again."""

from __future__ import annotations

import json
from collections.abc import Iterator

from confluent_kafka import Consumer, TopicPartition


class Reader:
    def __init__(self, servers: str, topic: str) -> None:
        self.consumer = Consumer({"bootstrap.servers": servers, "group.id": "store", "fetch.wait.max.ms": 5})
        self.consumer.assign([TopicPartition(topic, 0, 0), TopicPartition(topic, 1, 0)])

    def read(self) -> Iterator[int]:
        for message in self.consumer.consume(100, 0.01):
            number = json.loads(message.value() or b"")["number"]
            for _ in range(0 if number % 50 == 7 else 2 if number % 50 == 9 else 1):
                yield number

    def close(self) -> None:
        self.consumer.close()
