"""The second definition of latency: from the producer's timestamp to the broker's, read from the topics afterwards."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, TopicPartition

from tailrace._kafka.cluster import Servers, client_settings
from tailrace.bench.result import Latencies
from tailrace.errors import TailraceError
from tailrace.loadtest.records import Decode
from tailrace.loadtest.report import LatencyReport

READ_WITHIN_S = 120
# Written by the encoder; cheaper to find than to parse.
_BEFORE_NUMBER = len(b'{"number":')


@dataclass(frozen=True)
class Audit:
    latency: Latencies
    received: int
    other_rows: int
    """Rows that answer no record, such as those of timers."""


def audit(
    bootstrap_servers: Servers,
    input_topics: Iterable[str],
    output_topic: str,
    decode: Decode,
    is_measured: Callable[[int], bool],
) -> Audit:
    """:param is_measured: whether a record, by its intended time in ns, is in the window."""
    sent_ms: dict[int, int] = {}
    for topic in input_topics:
        for message in read_all(bootstrap_servers, topic):
            value = message.value() or b""
            sent_ms[int(value[_BEFORE_NUMBER : value.index(b",")])] = message.timestamp()[1]
    latencies: dict[int, int] = {}
    others = 0
    for message in read_all(bootstrap_servers, output_topic):
        answered = decode(message.key(), message.value() or b"")
        others += not answered
        for number, intended_ns in answered:
            if is_measured(intended_ns) and number in sent_ms:
                latency_ms = message.timestamp()[1] - sent_ms[number]
                latencies[number] = min(latency_ms, latencies.get(number, latency_ms))
    report = LatencyReport.from_latencies(
        ((0.0, 1000 * max(0, latency_ms)) for latency_ms in latencies.values()),
        expected=len(latencies),
        duplicates=0,
        started_ns=0,
        seconds=1,
    )
    return Audit(Latencies.of(report), len(latencies), others)


def read_all(bootstrap_servers: Servers, topic: str) -> Iterator[Message]:
    """Every record that is in a topic now."""
    consumer = Consumer(
        client_settings(
            bootstrap_servers,
            {
                "group.id": f"tailrace-audit-{time.time_ns()}",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                # As for a reader who trusts the writers' transactions.
                "isolation.level": "read_committed",
            },
        )
    )
    try:
        partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in partitions])
        at_end: set[int | None] = set()
        deadline = time.monotonic() + READ_WITHIN_S
        while len(at_end) < len(partitions):
            if time.monotonic() > deadline:
                raise TailraceError(
                    "TAILRACE_HARNESS_FAILED", f"the topic {topic} could not be read to its end.", "look at the broker."
                )
            for message in consumer.consume(1000, 0.2):
                problem = message.error()
                if problem is None:
                    yield message
                elif problem.code() == KafkaError._PARTITION_EOF:
                    at_end.add(message.partition())
    finally:
        consumer.close()
