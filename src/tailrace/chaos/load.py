"""The load: numbered records at a steady rate, whatever happens to those who read them."""

from __future__ import annotations

import threading
import time
from array import array
from collections.abc import Callable

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from tailrace._broker.admin import SILENT
from tailrace._kafka.cluster import Servers, client_settings
from tailrace.errors import TailraceError

Encode = Callable[[int], tuple[str, bytes]]
"""A record's number → its key and its value."""

NAP_S = 0.02
# Longer than any fault: a broker that is away delays records, it must not lose them before the test has begun.
DELIVERED_WITHIN_S = 300


class LoadGenerator:
    def __init__(self, bootstrap_servers: Servers, topic: str, *, rate: float, partitions: int, encode: Encode) -> None:
        self.topic = topic
        self.partitions = partitions
        self._rate = rate
        self._encode = encode
        self._partition_of = array("H")
        self._refused: str | None = None
        self._stop = threading.Event()
        self._producer = Producer(
            client_settings(
                bootstrap_servers,
                {
                    # A repeated send must not look like a duplicate of the query's.
                    "enable.idempotence": True,
                    "message.timeout.ms": DELIVERED_WITHIN_S * 1000,
                    "reconnect.backoff.max.ms": 500,
                    "topic.metadata.refresh.interval.ms": 1000,
                    "log_level": 0,
                },
            ),
            logger=SILENT,
        )
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def sent(self) -> int:
        return len(self._partition_of)

    def partition_of(self, number: int) -> int:
        """Of a record that was sent; an IndexError if it was not."""
        if number < 0:
            raise IndexError(number)
        return self._partition_of[number]

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the load and wait until the broker has it all; safe to call twice."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        left = self._producer.flush(DELIVERED_WITHIN_S)
        if left or self._refused:
            raise TailraceError(
                "TAILRACE_HARNESS_FAILED",
                f"{left or 'some'} records of the load did not reach the broker: {self._refused or 'no answer'}.",
                "check that the broker runs and has room on its disk.",
            )

    def abandon(self) -> None:
        """End the load without caring for what is under way."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        self._producer.purge()

    def _run(self) -> None:
        begun = time.monotonic()
        while not self._stop.wait(NAP_S):
            due = int((time.monotonic() - begun) * self._rate)
            while self.sent < due and not self._stop.is_set():
                self._send(self.sent)
            self._producer.poll(0)

    def _send(self, number: int) -> None:
        key, value = self._encode(number)
        partition = number % self.partitions
        while not self._stop.is_set():
            try:
                self._producer.produce(
                    self.topic, key=key, value=value, partition=partition, on_delivery=self._delivered
                )
                self._partition_of.append(partition)
                return
            except (BufferError, KafkaException):
                # Too much under way, or a new partition that the producer has not heard of yet.
                self._producer.poll(0.05)

    def _delivered(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            self._refused = error.str()
