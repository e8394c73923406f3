"""A small world around the exactly-once sink: sources, a query, an output topic, and runs that fail.

A run starts at the last commit, with the state of that time. It takes the rows of the source partitions in an order of
its own, makes output rows, and asks a deduplicator for each of its tasks which of them are written. When it is killed,
each task's records of each output partition survive up to some point.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from tests.unit.sink.rows import Decided, Identity, Replay, Row, Written
from tests.unit.sink.specification import Judge

TASKS = 2
OUTPUT_PARTITIONS = 2
TIMERS = -1
"""The source of a row that a timer makes."""


@dataclass(frozen=True)
class Record:
    """A record of a source partition, or a timer: the value is its time then."""

    partition: int
    offset: int
    key: str
    value: int


class Query(Protocol):
    """Makes rows of records. `version` is what the query asks of the world outside, such as a lookup table."""

    stateful: bool

    def rows(self, record: Record, state: dict[str, Any], version: int) -> list[Row]: ...


@dataclass(frozen=True)
class Aggregation:
    """An update for each row, by any function of the rows so far. A changing lookup shows in the update."""

    fold: Callable[[Any, int], Any]
    looks_up: bool = False
    drops_duplicates: bool = False
    has_key: bool = True
    stateful = True

    def rows(self, record: Record, state: dict[str, Any], version: int) -> list[Row]:
        seen = state.setdefault("seen", set())
        if self.drops_duplicates:
            if record.value in seen:
                return []
            seen.add(record.value)
        state[record.key] = self.fold(state.get(record.key), record.value)
        content = f"{state[record.key]}" + (f" of version {version}" if self.looks_up else "")
        key = record.key if self.has_key else None
        return [Row(Identity(record.partition, record.offset), task_of(record.key), key, content)]


@dataclass(frozen=True)
class Alerts:
    """A processor with timers: `silent` when a timer fires, `back` for the first reading after that."""

    has_key: bool = True
    says_version: bool = False
    """As a row does that says when its timer fired, if a replay sets the timer anew."""
    stateful = True

    def rows(self, record: Record, state: dict[str, Any], version: int) -> list[Row]:
        task = task_of(record.key)
        key = record.key if self.has_key else None
        if record.partition == TIMERS:
            state[record.key] = "silent"
            said = f"silent, {record.key}" + (f" of version {version}" if self.says_version else "")
            return [Row(None, task, key, said)]
        before = state.get(record.key)
        state[record.key] = "seen"
        said = f"back, {record.value}" if before == "silent" else f"seen, {record.value}"
        return [Row(Identity(record.partition, record.offset), task, key, said)]


@dataclass(frozen=True)
class Projection:
    """So many rows of each record as its value says. What a lookup answers can change, and so can their order."""

    looks_up: bool = False
    filters_by_chance: bool = False
    stateful = False

    def rows(self, record: Record, state: dict[str, Any], version: int) -> list[Row]:
        if self.filters_by_chance and (record.value + version) % 3 == 0:
            return []
        texts = [f"{record.value}.{copy}" + (f" of version {version}" if self.looks_up else "") for copy in range(2)]
        texts = texts[: 1 + record.value % 2]
        if version % 2:
            texts.reverse()
        identity = (record.partition, record.offset)
        return [
            Row(Identity(*identity, ordinal), record.partition, record.key, text) for ordinal, text in enumerate(texts)
        ]


def task_of(key: str) -> int:
    return ord(key[-1]) % TASKS


@dataclass(frozen=True)
class Run:
    """One attempt at what is not committed yet.

    `order` are the records as the operator gets them; what is committed is left out. The run commits the first of
    them, as many as `commits`, as an epoch of their own. `survivors` says how many records of the next epoch are in the
    topic in the end, by task and output partition; None if the run is not killed and commits that epoch too. If it is
    killed, its tasks may have finished by then.
    """

    order: tuple[Record, ...]
    version: int = 0
    survivors: Mapping[tuple[int, int], int] | None = None
    compacts: bool = False
    commits: int = 0
    finishes: bool = False
    expecting: int = 0
    """How many rows of each task come before all are there that are known to be in the output."""


@dataclass
class World:
    query: Query
    judge: Judge
    ordered: bool = True
    compacted: bool = False
    topic: list[Written] = field(default_factory=list)
    attempts: int = 0
    epoch: int = 0
    state: dict[str, Any] = field(default_factory=dict)
    """As of the last commit."""
    committed: list[Record] = field(default_factory=list)
    read_from: int = 0
    """Where the log says that a read-back starts."""
    made: list[Row] = field(default_factory=list)

    def play(self, runs: Sequence[Run]) -> list[Row]:
        """The runs one after the other. The rows of all committed epochs."""
        for run in runs:
            self._play(run)
            if run.compacts:
                self._compact()
        return self.made

    def _play(self, run: Run) -> None:
        self.attempts += 1
        known = self._read_back()
        order = [record for record in run.order if record not in self.committed]
        if run.commits:
            known = self._play_epoch(replace(run, survivors=None), order[: run.commits], known)
        self._play_epoch(run, order[run.commits :], known)

    def _play_epoch(self, run: Run, order: Sequence[Record], known: Sequence[Written]) -> Sequence[Written]:
        """What the run still knows of the output in its next epoch."""
        state = deepcopy(self.state)
        steps = [
            (step, row if row.identity else replace(row, epoch=self.epoch))
            for step, record in enumerate(order)
            for row in self.query.rows(record, state, run.version)
        ]
        written: list[tuple[int, Decided]] = []
        for task in range(TASKS):
            of_task = [(step, row) for step, row in steps if row.task == task]
            rows = tuple(row for _, row in of_task)
            answer = self.judge(
                Replay(
                    stateful=self.query.stateful,
                    task=task,
                    written=tuple(known),
                    rows=rows,
                    expecting=run.expecting,
                    ordered=self.ordered,
                    compacted=self.compacted,
                )
            )
            written += [(of_task[one.after - 1][0], one) for one in answer.decided if one.is_written]
            if run.survivors is None or run.finishes:
                written += [(len(order), one) for one in answer.finished if one.is_written]
        self._send(run, written)
        if run.survivors is None:
            self.made += [row for _, row in steps]
            self.state, self.epoch = state, self.epoch + 1
            self.committed += order
            if not known:
                self.read_from = self._end
        return self._read_back() if any(map(self._can_come_again, known)) else ()

    def _read_back(self) -> Sequence[Written]:
        return [one for one in self.topic if one.offset >= self.read_from]

    def _can_come_again(self, one: Written) -> bool:
        if one.row.identity is None:
            return one.row.epoch == self.epoch
        _, partition, offset = one.row.identity.record
        return all((record.partition, record.offset) != (partition, offset) for record in self.committed)

    @property
    def _end(self) -> int:
        # Compaction keeps the last record, so offsets go on behind it.
        return self.topic[-1].offset + 1 if self.topic else 0

    def _send(self, run: Run, written: Sequence[tuple[int, Decided]]) -> None:
        sequences = dict.fromkeys(range(TASKS), 0)
        arrived: dict[tuple[int, int], int] = {}
        # Stable: the rows of a step, and of a task, stay in their order.
        for _, decided in sorted(written, key=lambda one: one[0]):
            row = decided.row
            place = row.task, output_partition(row.key)
            arrived[place] = arrived.get(place, 0) + 1
            if run.survivors is None or arrived[place] <= run.survivors.get(place, 0):
                self.topic.append(Written(decided.record, self.attempts, sequences[row.task], self._end))
            sequences[row.task] += 1

    def _compact(self) -> None:
        last = {one.key: one.offset for one in self.topic}
        self.topic = [one for one in self.topic if one.key is None or last[one.key] == one.offset]


def output_partition(key: str | None) -> int:
    return 0 if key is None else ord(key[0]) % OUTPUT_PARTITIONS
