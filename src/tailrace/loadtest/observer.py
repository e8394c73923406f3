"""The independent reader: reads the output topic or the store, and records when each record arrived.

Runs in its own process (`python -m tailrace.loadtest.observer`).
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from confluent_kafka import Consumer, TopicPartition

from tailrace._kafka.cluster import Servers, client_settings, cluster_from
from tailrace.loadtest._child import Message, Owner, serve
from tailrace.loadtest.observations import Observations
from tailrace.loadtest.records import Decode, Reader, load_function, new_function
from tailrace.loadtest.report import new_histogram, record_us

CLOCK_TOLERANCE_US = 1000
# How often to check the owner's orders and the clock.
RECORDS_A_TURN = 1000
# Between two looks at a store that has nothing new.
STORE_NAP_S = 0.001


class TopicReader:
    """Reads the output topic."""

    def __init__(self, bootstrap_servers: Servers, topic: str, decode: Decode) -> None:
        self._decode = decode
        self._consumer = Consumer(
            client_settings(
                bootstrap_servers,
                {
                    "group.id": f"tailrace-observer-{time.time_ns()}",
                    "enable.auto.commit": False,
                    # Ignore what was written before the test.
                    "auto.offset.reset": "latest",
                    "fetch.wait.max.ms": 5,
                },
            )
        )
        described = self._consumer.list_topics(topic, timeout=10).topics[topic]
        if not described.partitions:
            raise LookupError(f"there is no topic '{topic}' on {bootstrap_servers}")
        self._consumer.assign(
            [
                TopicPartition(topic, number, self._consumer.get_watermark_offsets(TopicPartition(topic, number))[1])
                for number in described.partitions
            ]
        )

    def read(self) -> Iterator[tuple[int, int]]:
        """Take the available records, and wait a moment only for the first.

        One by one: a request for many would wait until all have arrived or the time is up.
        """
        for turn in range(RECORDS_A_TURN):
            message = self._consumer.poll(0.01 if turn == 0 else 0)
            if message is None:
                return
            value = message.value()
            if not message.error() and value is not None:
                yield from self._decode(message.key(), value)

    def close(self) -> None:
        self._consumer.close()


class StoreReader:
    """Asks the user's reader which records have become visible, from the start of the load."""

    def __init__(self, reader: Reader, rate: float) -> None:
        self._reader = reader
        self._interval_ns = 1e9 / rate
        self.start_ns: int | None = None

    def read(self) -> Iterator[tuple[int, int]]:
        if self.start_ns is None:
            time.sleep(STORE_NAP_S)
            return
        found = False
        for number in self._reader.read():
            found = True
            yield number, self.start_ns + int(number * self._interval_ns)
        if not found:
            time.sleep(STORE_NAP_S)

    def close(self) -> None:
        self._reader.close()


class Observer:
    def __init__(self, source: TopicReader | StoreReader) -> None:
        self.source = source
        self.observations = Observations()
        self._second = new_histogram()

    def poll(self) -> None:
        for number, intended_ns in self.source.read():
            latency_us = (time.time_ns() - intended_ns) // 1000
            if latency_us < -CLOCK_TOLERANCE_US:
                raise RuntimeError("a record arrived before it was due: this machine's clock was set back")
            self.observations.add(number, latency_us)
            record_us(self._second, latency_us)

    def snapshot(self) -> Message:
        """The figures since the last snapshot."""
        figures = {
            name: self._second.get_value_at_percentile(percentile) / 1000
            for name, percentile in (("p50_ms", 50), ("p99_ms", 99), ("p999_ms", 99.9), ("max_ms", 100))
        }
        message = {"event": "snapshot", "records": self._second.get_total_count(), "seen": self.observations.seen}
        self._second.reset()
        return message | figures


def run(owner: Owner) -> None:
    config = owner.config
    source = _source(config)
    observer = Observer(source)
    is_answered = load_function(config["is_answered"])
    owner.tell({"event": "ready"})
    next_snapshot = time.monotonic() + 1
    finish: Message | None = None
    deadline = 0.0
    while True:
        observer.poll()
        if time.monotonic() >= next_snapshot:
            next_snapshot += 1
            owner.tell(observer.snapshot())
        order = owner.next_order()
        if order is not None and order["order"] == "started":
            if isinstance(source, StoreReader):
                source.start_ns = order["start_ns"]
        elif order is not None:
            finish = order
            deadline = time.monotonic() + finish["patience_s"]
        if finish is not None:
            done = observer.observations.complete(finish["first"], finish["end"], is_answered)
            if done or time.monotonic() >= deadline:
                owner.tell(observer.observations.result(finish["first"], finish["end"]))
                break
    source.close()


def _source(config: Message) -> TopicReader | StoreReader:
    if config["reader"] is not None:
        return StoreReader(new_function(config["reader"], config["reader_options"]), config["rate"])
    decode = new_function(config["decode"], config["decode_options"])
    return TopicReader(cluster_from(config["cluster"]), config["topic"], decode)


if __name__ == "__main__":
    serve(run)
