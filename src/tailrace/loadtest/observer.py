"""The independent consumer: reads the output topic and records when each record arrived.

Runs in its own process (`python -m tailrace.loadtest.observer`).
"""

from __future__ import annotations

import time

from confluent_kafka import Consumer, TopicPartition

from tailrace.loadtest._child import Message, Owner, serve
from tailrace.loadtest.observations import Observations
from tailrace.loadtest.records import Decode, load_function, new_function
from tailrace.loadtest.report import new_histogram, record_us

CLOCK_TOLERANCE_US = 1000
# How often to check the owner's orders and the clock.
RECORDS_A_TURN = 1000


class Observer:
    def __init__(self, bootstrap_servers: str, topic: str, decode: Decode) -> None:
        self.decode = decode
        self.observations = Observations()
        self._second = new_histogram()
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap_servers,
                "group.id": f"tailrace-observer-{time.time_ns()}",
                "enable.auto.commit": False,
                # Ignore what was written before the test.
                "auto.offset.reset": "latest",
                "fetch.wait.max.ms": 5,
            }
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

    def poll(self) -> None:
        """Take the available records, and wait a moment only for the first.

        One by one: a request for many would wait until all have arrived or the time is up.
        """
        for turn in range(RECORDS_A_TURN):
            message = self._consumer.poll(0.01 if turn == 0 else 0)
            if message is None:
                return
            now_ns = time.time_ns()
            value = message.value()
            if not message.error() and value is not None:
                for number, intended_ns in self.decode(message.key(), value):
                    latency_us = (now_ns - intended_ns) // 1000
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

    def close(self) -> None:
        self._consumer.close()


def run(owner: Owner) -> None:
    config = owner.config
    observer = Observer(
        config["bootstrap_servers"], config["topic"], new_function(config["decode"], config["decode_options"])
    )
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
        if finish is None and (finish := owner.next_order()) is not None:
            deadline = time.monotonic() + finish["patience_s"]
        if finish is not None:
            done = observer.observations.complete(finish["first"], finish["end"], is_answered)
            if done or time.monotonic() >= deadline:
                owner.tell(observer.observations.result(finish["first"], finish["end"]))
                break
    observer.close()


if __name__ == "__main__":
    serve(run)
