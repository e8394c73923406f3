"""What the model of the exactly-once sink is made of: rows, records in the output, decisions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum


@dataclass(frozen=True)
class Identity:
    """Where a row comes from: a record of a source partition, and which of its rows it is."""

    partition: int
    offset: int
    ordinal: int = 0
    source: int = 0

    @property
    def record(self) -> tuple[int, int, int]:
        return self.source, self.partition, self.offset


@dataclass(frozen=True)
class Row:
    """A row that is ready to be written. Time made it if it has no identity."""

    identity: Identity | None
    task: int
    key: str | None
    content: str
    epoch: int = 0
    """The epoch that it was made in, if time made it."""


@dataclass(frozen=True)
class Written:
    """A record in the output."""

    row: Row
    attempt: int
    sequence: int
    offset: int

    @property
    def key(self) -> str | None:
        return self.row.key

    @property
    def task(self) -> int:
        return self.row.task


class Decision(Enum):
    WRITE = "write"
    DROP = "drop"
    CORRECT = "correct"


@dataclass(frozen=True)
class Decided:
    row: Row
    decision: Decision
    after: int
    """How many rows of the task had been offered by then."""
    ordinal: int = 0
    """The ordinal with which the row is written."""

    @property
    def is_written(self) -> bool:
        return self.decision is not Decision.DROP

    @property
    def record(self) -> Row:
        """The row as it is written."""
        identity = self.row.identity
        return self.row if identity is None else replace(self.row, identity=replace(identity, ordinal=self.ordinal))


@dataclass(frozen=True)
class Replay:
    """What a task's deduplicator is asked: the output as it was read back, and the rows in the order they are made."""

    stateful: bool
    task: int
    written: tuple[Written, ...]
    rows: tuple[Row, ...]
    epoch: int = 0
    expecting: int = 0
    """As many of these rows come while rows are expected that are in the output."""
    ordered: bool = True
    same_query: bool = True
    compacted: bool = False


@dataclass(frozen=True)
class Answer:
    """The decisions while rows arrive, and those at the end of the epoch."""

    decided: tuple[Decided, ...]
    finished: tuple[Decided, ...]
