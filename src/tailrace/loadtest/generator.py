"""The open-loop load: one record at each time of a fixed schedule, whatever the pipeline does.

Runs in its own process (`python -m tailrace.loadtest.generator`), so neither Spark's driver nor a live display can
delay it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from confluent_kafka import KafkaError, Message, Producer

from tailrace._kafka.cluster import Servers, client_settings, cluster_from
from tailrace.loadtest._child import Owner, serve
from tailrace.loadtest.records import Encode, new_function

LOG_ERRORS_ONLY = 3  # syslog's number; with a fresh broker the client warns that it retries
LEAD_NS = 100_000_000
LONGEST_NAP_NS = 20_000_000
# If the generator falls further behind its schedule than this, it measures itself and not the pipeline.
TOO_LATE_NS = 1_000_000_000


class Generator:
    def __init__(self, bootstrap_servers: Servers, topics: Sequence[str], rate: float, encode: Encode) -> None:
        self.topics = topics
        self.interval_ns = 1e9 / rate
        self.encode = encode
        self.sent = 0
        self.refused = 0
        # No lingering: a record leaves when it is due. Idempotent: a retried send must not look like a duplicate of
        # the pipeline. The long time-out lets records survive a stopped broker, whose silence then shows as latency
        # and not as loss.
        self._producer = Producer(
            client_settings(
                bootstrap_servers,
                {
                    "linger.ms": 0,
                    "enable.idempotence": True,
                    "message.timeout.ms": 120_000,
                    "log_level": LOG_ERRORS_ONLY,
                },
            )
        )

    def run(self, started: Callable[[int], None], next_order: Callable[[], dict[str, Any] | None]) -> None:
        """Send until an order gives the number of records to stop after."""
        offset_ns = time.time_ns() - time.monotonic_ns()
        start_ns = time.monotonic_ns() + LEAD_NS
        started(start_ns + offset_ns)
        last: int | None = None
        while last is None or self.sent < last:
            order = next_order()
            last = order["after"] if order else last
            due_ns = start_ns + int(self.sent * self.interval_ns)
            wait_ns = due_ns - time.monotonic_ns()
            if wait_ns > 0:
                self._producer.poll(0)
                time.sleep(min(wait_ns, LONGEST_NAP_NS) / 1e9)
                continue
            if last is not None and -wait_ns > TOO_LATE_NS:
                break
            # Late or not, the record says when it was due.
            self._send(self.topics[self.sent % len(self.topics)], *self.encode(self.sent, due_ns + offset_ns))
            self.sent += 1
        self.refused += self._producer.flush(30)

    def _send(self, topic: str, key: bytes | None, value: bytes) -> None:
        while True:
            try:
                self._producer.produce(topic, key=key, value=value, on_delivery=self._delivered)
                self._producer.poll(0)
                return
            except BufferError:
                self._producer.poll(0.01)

    def _delivered(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            self.refused += 1


def run(owner: Owner) -> None:
    config = owner.config
    encode: Encode = new_function(config["encode"], config["encode_options"])
    generator = Generator(cluster_from(config["cluster"]), config["topics"], config["rate"], encode)
    generator.run(lambda start_ns: owner.tell({"event": "started", "start_ns": start_ns}), owner.next_order)
    owner.tell({"event": "finished", "sent": generator.sent, "refused": generator.refused})


if __name__ == "__main__":
    serve(run)
