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
class Silences:
    """A processor whose rows tell by their own time that their key was silent before them. A timer only tells it first.

    So the results of a key are a function of its rows, if the timer is right.
    """

    has_key: bool = True
    counts: bool = True
    """Whether each silence looks different from the others."""
    stateful = True

    def rows(self, record: Record, state: dict[str, Any], version: int) -> list[Row]:
        key, task = record.key, task_of(record.key)
        seen, told = state.get(key, (0, False))
        silent, back = (f"{key} {said}{f' {seen}' if self.counts else ''}" for said in ("silent", "back"))
        if record.partition == TIMERS:
            state[key] = (seen, told or seen > 0)
            texts = [silent] if seen > 0 and not told else []
        else:
            state[key] = (seen + 1, False)
            was_silent = seen > 0 and is_after_silence(record)
            texts = [silent] * (was_silent and not told) + [back] * (was_silent or told)
        return [
            Row(None if record.partition == TIMERS else Identity(record.partition, record.offset, ordinal), *rest, text)
            for ordinal, text in enumerate(texts)
            for rest in [(task, key if self.has_key else None)]
        ]


def is_after_silence(record: Record) -> bool:
    return record.value >= 3


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
    overlaps: int | None = None
    """If the next epoch writes its first rows while the committed one still writes: where a read-back then starts, so
    many records before the first of the next epoch."""


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
    committed_at_start: list[Record] = field(default_factory=list)
    """As of the start of the run."""

    def play(self, runs: Sequence[Run]) -> list[Row]:
        """The runs one after the other. The rows of all committed epochs."""
        for run in runs:
            self._play(run)
            if run.compacts:
                self._compact()
        return self.made

    def _play(self, run: Run) -> None:
        self.attempts += 1
        self.committed_at_start = list(self.committed)
        known = self._read_back()
        order = [record for record in run.order if record not in self.committed]
        if run.commits and run.overlaps is not None and not known:
            self._play_overlapping(run, order[: run.commits], order[run.commits :])
            return
        if run.commits:
            known = self._play_epoch(replace(run, survivors=None), order[: run.commits], known)
        self._play_epoch(run, order[run.commits :], known)

    def _play_epoch(self, run: Run, order: Sequence[Record], known: Sequence[Written]) -> Sequence[Written]:
        """What the run still knows of the output in its next epoch."""
        state = deepcopy(self.state)
        made, written = self._decide(run, order, known, state)
        self._send(run, written)
        if run.survivors is None:
            self._commit(order, made, state)
            if not known:
                self.read_from = self._end
        return self._read_back() if any(map(self._can_come_again, known)) else ()

    def _play_overlapping(self, run: Run, order: Sequence[Record], following: Sequence[Record]) -> None:
        """An epoch that is committed, and the next one. A task that has ended the first has begun the second."""
        state = deepcopy(self.state)
        made, written = self._decide(run, order, (), state)
        after_commit = deepcopy(state)
        more, next_written = self._decide(run, following, (), state)
        ends = dict.fromkeys(range(TASKS), 0) | {one.row.task: step + 1 for step, one in written}
        begun = [(ends[one.row.task] + step, one) for step, one in next_written]
        first = self._send(run, written, begun)
        self._commit(order, made, after_commit)
        self.read_from = max(self.read_from, first - (run.overlaps or 0))
        if run.survivors is None:
            self._commit(following, more, state)
            self.read_from = self._end

    def _decide(
        self, run: Run, order: Sequence[Record], known: Sequence[Written], state: dict[str, Any]
    ) -> tuple[list[Row], list[tuple[int, Decided]]]:
        """The rows of an epoch, and those that are written, each with its step. The state is changed."""
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
                    epoch=self.epoch,
                    expecting=run.expecting,
                    ordered=self.ordered,
                    compacted=self.compacted,
                )
            )
            written += [(of_task[one.after - 1][0], one) for one in answer.decided if one.is_written]
            if run.survivors is None or run.finishes:
                written += [(len(order), one) for one in answer.finished if one.is_written]
        return [row for _, row in steps], written

    def _commit(self, order: Sequence[Record], made: list[Row], state: dict[str, Any]) -> None:
        self.made += made
        self.state, self.epoch = state, self.epoch + 1
        self.committed += order

    def _read_back(self) -> Sequence[Written]:
        """Without those of a key that were committed before the run, up to the first one that can come again."""
        open_keys = set()
        found = []
        for one in self.topic:
            if one.offset >= self.read_from:
                if not self._is_among(one, self.committed_at_start):
                    open_keys.add(one.key)
                if one.key in open_keys:
                    found.append(one)
        return found

    def _can_come_again(self, one: Written) -> bool:
        return one.row.epoch == self.epoch if one.row.identity is None else not self._is_among(one, self.committed)

    @staticmethod
    def _is_among(one: Written, records: Sequence[Record]) -> bool:
        if one.row.identity is None:
            return False
        _, partition, offset = one.row.identity.record
        return any((record.partition, record.offset) == (partition, offset) for record in records)

    @property
    def _end(self) -> int:
        # Compaction keeps the last record, so offsets go on behind it.
        return self.topic[-1].offset + 1 if self.topic else 0

    def _send(
        self, run: Run, written: Sequence[tuple[int, Decided]], begun: Sequence[tuple[int, Decided]] | None = None
    ) -> int:
        """Those of the next epoch as well, if one has begun. The offset of its first record."""
        sequences = dict.fromkeys(range(TASKS), 0)
        arrived: dict[tuple[int, int], int] = {}
        # All rows of an epoch survive that is committed although the run is killed in the next one.
        sure = set() if begun is None else {id(decided) for _, decided in written}
        first: int | None = None
        # Stable: the rows of a step, and of a task, stay in their order.
        for _, decided in sorted([*written, *(begun or ())], key=lambda one: one[0]):
            row = decided.row
            if begun and id(decided) not in sure:
                first = self._end if first is None else first
            place = row.task, output_partition(row.key)
            if id(decided) in sure or self._survives(run, place, arrived):
                self.topic.append(Written(decided.record, self.attempts, sequences[row.task], self._end))
            sequences[row.task] += 1
        return self._end if first is None else first

    @staticmethod
    def _survives(run: Run, place: tuple[int, int], arrived: dict[tuple[int, int], int]) -> bool:
        arrived[place] = arrived.get(place, 0) + 1
        return run.survivors is None or arrived[place] <= run.survivors.get(place, 0)

    def _compact(self) -> None:
        last = {one.key: one.offset for one in self.topic}
        self.topic = [one for one in self.topic if one.key is None or last[one.key] == one.offset]


def output_partition(key: str | None) -> int:
    return 0 if key is None else ord(key[0]) % OUTPUT_PARTITIONS
