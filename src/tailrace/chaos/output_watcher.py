"""Watches the output while the queries run: which of them write new rows again, and since when."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from tailrace._kafka.cluster import Servers
from tailrace.chaos.topics import beginnings, new_reader


@dataclass(frozen=True)
class Watched:
    """A topic, a table or a stream that a query writes to."""

    query: str
    topic: str
    row_field: str
    """Where an output record says which row it is."""
    by: str = ""
    """What its records say in `by`, if other queries write to the topic as well."""


class LiveReader(Protocol):
    """Reads outputs while queries write to them."""

    def read(self) -> Iterable[tuple[str, bytes]]:
        """What has been written since the last call: the output's name and the value. Waits for a moment."""

    def close(self) -> None: ...


class TopicReader:
    def __init__(self, bootstrap_servers: Servers, topics: Iterable[str]) -> None:
        self._reader = new_reader(bootstrap_servers)
        self._reader.assign(beginnings(self._reader, topics))

    def read(self) -> Iterator[tuple[str, bytes]]:
        for message in self._reader.consume(1000, 0.02):
            if message.error() is None:
                yield str(message.topic()), message.value() or b""

    def close(self) -> None:
        self._reader.close()


class OutputWatcher:
    """Reads every query's outputs in a thread of its own, and keeps only when something new came.

    :param number_field: where an output record says which input record it answers.
    """

    def __init__(
        self,
        readers: Sequence[LiveReader],
        outputs: Sequence[Watched],
        *,
        number_field: str,
        partition_of: Callable[[int], int],
    ) -> None:
        self._outputs: dict[str, list[Watched]] = {}
        for output in outputs:
            self._outputs.setdefault(output.topic, []).append(output)
        self._number_field = number_field
        self._partition_of = partition_of
        self._lock = threading.Lock()
        self._mark = 0
        self._reached: dict[tuple[str, int], float] = {}
        self._seen = {output.query: bytearray() for output in outputs}
        self.last_new_at = time.monotonic()
        self._readers = readers
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def mark(self, number: int) -> None:
        """From now on rows count as new if they answer this record or a later one."""
        with self._lock:
            self._mark = number
            self._reached.clear()

    def flowing_since(self, query: str, partitions: int) -> float | None:
        """When the last of the input's partitions gave its first new row; none while one has not."""
        with self._lock:
            times = [self._reached.get((query, partition)) for partition in range(partitions)]
        return None if None in times else max(time for time in times if time is not None)

    def missing(self, query: str, rows: set[int]) -> set[int]:
        """Those of the rows that have not come out yet."""
        with self._lock:
            seen = self._seen[query]
            return {row for row in rows if row >= len(seen) or not seen[row]}

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
        for reader in self._readers:
            reader.close()

    def _run(self) -> None:
        while not self._stop.is_set():
            for reader in self._readers:
                for output, value in reader.read():
                    self._note(self._outputs[output], value)

    def _note(self, outputs: list[Watched], value: bytes) -> None:
        try:
            fields = json.loads(value)
            output = next(each for each in outputs if each.by == fields.get("by", "") or len(outputs) == 1)
            query, number, row = output.query, int(fields[self._number_field]), int(fields[output.row_field])
            partition = self._partition_of(number)
        except (ValueError, KeyError, TypeError, IndexError, AttributeError, StopIteration):
            # Not an answer to anything; the comparison at the end reports it.
            return
        with self._lock:
            seen = self._seen[query]
            if row >= len(seen):
                seen.extend(bytes(row + 1 - len(seen)))
            if not seen[row]:
                seen[row] = 1
                self.last_new_at = time.monotonic()
            if number >= self._mark:
                self._reached.setdefault((query, partition), time.monotonic())
