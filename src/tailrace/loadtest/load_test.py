"""One load test: a generator and an observer around a pipeline from a topic to another, or to a store."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tailrace._kafka.cluster import Servers, as_cluster
from tailrace._process.machine_load import stretched
from tailrace.errors import TailraceError
from tailrace.loadtest._child import Child, Message
from tailrace.loadtest.observations import ABSENT
from tailrace.loadtest.records import IsAnswered, load_function
from tailrace.loadtest.report import LatencyReport

CHILD_READY_WITHIN_S = 30


@dataclass(frozen=True)
class LoadSnapshot:
    """What the observer saw in the last second; `seen` counts all records so far."""

    records: int
    p50_ms: float
    p99_ms: float
    p999_ms: float
    max_ms: float
    seen: int


class LoadTest:
    """Drive a pipeline with a fixed load and measure it from outside.

        with LoadTest(bootstrap_servers=…, input_topic="in", output_topic="out", rate=200) as load:
            load.wait_for_output(timeout_s=60)
            report = load.measure(seconds=30)

    The pipeline may start before or after the load. The generator and the observer run in their own processes.

    :param bootstrap_servers: the broker's address, or a `tailrace.kafka.KafkaCluster` for a secured one.
    :param rate: records per second.
    :param input_topic: the topic to send to. Several topics get the records in turn.
    :param encode: the function that makes a record, as "module:function" (see `tailrace.loadtest.records`). If it names
        a class, an instance is created with `encode_options`.
    :param decode: the function that reads a record's number and send time from the output, as "module:function". If it
        names a class, an instance is created with `decode_options`.
    :param encode_options: keyword arguments for an `encode` class.
    :param decode_options: keyword arguments for a `decode` class.
    :param reader: for a pipeline that ends in a store: the class that reads it, as "module:class". Its `read()` returns
        the numbers of the records that have become visible (see `tailrace.loadtest.records.Reader`).
    :param reader_options: keyword arguments for the `reader`.
    :param is_answered: the function that says of a record's number whether the pipeline answers it, as
        "module:function"; for pipelines that drop some on purpose.
    :param on_snapshot: called once a second with what the observer saw.
    """

    def __init__(
        self,
        *,
        bootstrap_servers: Servers,
        input_topic: str | Sequence[str],
        output_topic: str | None = None,
        rate: float,
        encode: str = "tailrace.loadtest.records:encode_json",
        decode: str = "tailrace.loadtest.records:decode_json",
        encode_options: dict[str, Any] | None = None,
        decode_options: dict[str, Any] | None = None,
        reader: str | None = None,
        reader_options: dict[str, Any] | None = None,
        is_answered: str = "tailrace.loadtest.records:answers_all",
        on_snapshot: Callable[[LoadSnapshot], None] = lambda _: None,
    ) -> None:
        if (output_topic is None) == (reader is None):
            raise TailraceError(
                "TAILRACE_BAD_ARGUMENT",
                "a load test observes one output: a topic or a store.",
                "give either output_topic or reader.",
            )
        self.rate = rate
        self.on_snapshot = on_snapshot
        self._generator_config = {
            # Over the child's standard input: passwords are among it.
            "cluster": as_cluster(bootstrap_servers).to_dict(),
            "topics": [input_topic] if isinstance(input_topic, str) else list(input_topic),
            "rate": rate,
            "encode": encode,
            "encode_options": encode_options or {},
        }
        self._observer_config = {
            # Over the child's standard input: passwords are among it.
            "cluster": as_cluster(bootstrap_servers).to_dict(),
            "topic": output_topic,
            "decode": decode,
            "decode_options": decode_options or {},
            "reader": reader,
            "reader_options": reader_options or {},
            "rate": rate,
            "is_answered": is_answered,
        }
        self._is_answered: IsAnswered = load_function(is_answered)
        self._news = threading.Condition()
        self._events: dict[str, Message] = {}
        self._seen = 0
        self._generator: Child | None = None
        self._observer: Child | None = None

    def __enter__(self) -> LoadTest:
        try:
            # The observer first: it must be running when the first output appears.
            self._observer = Child("tailrace.loadtest.observer", self._observer_config, self._note)
            self._event("ready", stretched(CHILD_READY_WITHIN_S))
            self._generator = Child("tailrace.loadtest.generator", self._generator_config, self._note)
            self._start_ns = int(self._event("started", stretched(CHILD_READY_WITHIN_S))["start_ns"])
            self._observer.tell({"order": "started", "start_ns": self._start_ns})
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_failure: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the generator and the observer."""
        for child in (self._generator, self._observer):
            if child is not None:
                child.close()

    def wait_for_output(self, *, timeout_s: float, records: int = 1, check: Callable[[], None] = lambda: None) -> None:
        """Wait until the observer has seen that many records. `check` may raise to give up earlier."""
        if not self._news_within(timeout_s, lambda: self._seen >= records, check):
            raise TailraceError(
                "TAILRACE_NO_OUTPUT",
                f"the pipeline wrote {self._seen} of {records} records in {timeout_s:g} s.",
                "check that the query runs, reads the input topic and has enough task slots.",
            )

    def measure(
        self, *, seconds: float, patience_s: float = 15, check: Callable[[], None] = lambda: None
    ) -> LatencyReport:
        """Measure the records due in the next `seconds`, then stop the load.

        :param patience_s: how long to wait for missing records before they count as lost.
        :param check: called while waiting; may raise to give up earlier.
        """
        from_ns = time.time_ns()
        until_ns = from_ns + int(seconds * 1e9)
        first, end = self._number_at(from_ns), self._number_at(until_ns)
        while time.time_ns() < until_ns:
            time.sleep(0.05)
            check()
            self._raise_if_failed()
        assert self._generator is not None
        assert self._observer is not None
        # The load continues until all answers are in: a pipeline may handle its last records differently.
        self._observer.tell({"order": "finish", "first": first, "end": end, "patience_s": patience_s})
        result = self._event("result", patience_s + 60)
        self._generator.tell({"order": "stop", "after": end})
        self._raise_if_not_sent(self._event("finished", 60), end)
        return LatencyReport.from_latencies(
            self._by_due_time(result, from_ns),
            expected=sum(map(self._is_answered, range(first, end))),
            duplicates=int(result["duplicates"]),
            started_ns=from_ns,
            seconds=seconds,
        )

    def _raise_if_not_sent(self, sent: Message, end: int) -> None:
        """Raise if not everything was sent: that must not be blamed on the pipeline."""
        if sent["sent"] < end:
            raise TailraceError(
                "TAILRACE_GENERATOR_TOO_SLOW",
                f"the generator is more than a second behind: this machine cannot send {self.rate:g} records a second.",
                "choose a lower rate.",
            )
        if sent["refused"]:
            raise TailraceError(
                "TAILRACE_HARNESS_FAILED",
                f"the broker refused {sent['refused']} of {sent['sent']} records.",
                "look at the broker's log.",
            )

    def _number_at(self, time_ns: int) -> int:
        """The first record that is due at or after this time."""
        return max(0, math.ceil((time_ns - self._start_ns) * self.rate / 1e9))

    def _by_due_time(self, result: Message, from_ns: int) -> list[tuple[float, int]]:
        pairs = []
        for number, latency_us in enumerate(result["latencies_us"], start=result["first"]):
            if latency_us != ABSENT:
                due_ns = self._start_ns + number * 1e9 / self.rate
                pairs.append(((due_ns - from_ns) / 1e9, latency_us))
        return pairs

    def _note(self, message: Message) -> None:
        event = message.pop("event")
        with self._news:
            if event == "snapshot":
                self._seen = message["seen"]
            else:
                self._events[event] = message
            self._news.notify_all()
        if event == "snapshot":
            self.on_snapshot(LoadSnapshot(**message))

    def _event(self, name: str, timeout_s: float) -> Message:
        if not self._news_within(timeout_s, lambda: name in self._events):
            raise TailraceError(
                "TAILRACE_HARNESS_FAILED",
                f"the load test's processes did not report '{name}' within {timeout_s:g} s.",
                "check that the broker is reachable and the topics exist.",
            )
        return self._events[name]

    def _news_within(
        self, timeout_s: float, come: Callable[[], bool], check: Callable[[], None] = lambda: None
    ) -> bool:
        """True if the event came in time. A child that fails meanwhile, or `check`, raises at once."""
        deadline = time.monotonic() + timeout_s
        with self._news:
            while not come():
                self._news.wait(0.2)
                check()
                self._raise_if_failed()
                if time.monotonic() > deadline:
                    return False
        return True

    def _raise_if_failed(self) -> None:
        for child in (self._generator, self._observer):
            if child is not None:
                child.raise_if_failed()
