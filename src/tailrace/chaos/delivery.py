"""What was sent against what came out: lost, duplicates, out of order. Pure functions, no broker and no clock."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum

from tailrace.chaos.records import Record, record
from tailrace.chaos.topics import Read
from tailrace.chaos.workloads import PARTNER, doubled, passes, scored

EXAMPLES = 5
NOT_SAID = -1


class Promise(Enum):
    """What a sink promises of each row."""

    AT_LEAST_ONCE = "at least once"
    EXACTLY_ONCE = "exactly once"

    @classmethod
    def of_sink(cls, sink: str) -> Promise:
        return cls.AT_LEAST_ONCE if sink == "kafka" else cls.EXACTLY_ONCE


@dataclass(frozen=True)
class Sent:
    """An input record and the partition in which it lies."""

    record: Record
    partition: int


@dataclass(frozen=True)
class Answer:
    """An output record. Answers of one key are in one partition of the output, and so in an order."""

    key: str
    number: int
    fields: dict[str, int] = field(default_factory=dict)


@dataclass
class Delivery:
    """What one query delivered. A row is what the workload must write once: an answer to a record, or to an id."""

    sent: int
    due: int
    out: int
    lost: list[int] = field(default_factory=list)
    """Rows that never came out."""
    duplicates: list[int] = field(default_factory=list)
    """Rows that came out more than once, one entry for each surplus copy."""
    unknown: list[int] = field(default_factory=list)
    """Answers to records that were never sent."""
    out_of_order: list[int] | None = None
    """Rows that came for the first time after a later one of the same key and input partition; none if not promised."""
    wrong: list[int] = field(default_factory=list)
    """Rows with a wrong value."""
    regressions: int = 0
    """How often a key's count did not go up."""
    keys: int | None = None
    """Keys whose last value was compared with the reference."""
    wrong_keys: list[str] = field(default_factory=list)
    """Keys whose last value is not the reference's."""

    def broken(self, promise: Promise) -> list[str]:
        """What breaks the promise, in words; empty if it is kept."""
        found = [
            _told("lost", self.lost),
            _told("unknown", self.unknown),
            _told("with a wrong value", self.wrong),
            _told("keys with a wrong last value", self.wrong_keys),
        ]
        if promise is Promise.EXACTLY_ONCE:
            found += [
                _told("duplicates", self.duplicates),
                _told("out of order", self.out_of_order or []),
                f"{self.regressions} counts that went back" if self.regressions else "",
            ]
            # Duplicates are reported above; this is about any other difference in number.
            if not any(found) and self.out != self.due:
                found.append(f"{self.out} rows instead of {self.due}")
        return [text for text in found if text]


def _told(what: str, numbers: Sequence[int] | Sequence[str]) -> str:
    if not numbers:
        return ""
    examples = ", ".join(map(str, numbers[:EXAMPLES]))
    return f"{len(numbers)} {what}: {examples}{' …' if len(numbers) > EXAMPLES else ''}"


@dataclass(frozen=True)
class Expected:
    """What a workload makes of a record."""

    row: Callable[[Record], int | None]
    """What identifies the row that a record must give; none if it gives no row."""
    values: Callable[[Record], dict[str, int]] = lambda record: {}
    """The fields of its answer that depend only on the record."""
    ordered: bool = True
    totals: bool = False
    """Whether answers have a running count and sum of their key."""


def _pair(second: Record) -> dict[str, int]:
    return {"partner": second.number - PARTNER, "sum": record(second.number - PARTNER).amount + second.amount}


EXPECTED = {
    "stateless": Expected(
        lambda record: record.number if passes(record.amount) else None,
        lambda record: {"id": record.id, "doubled": doubled(record.amount)},
    ),
    "python": Expected(
        lambda record: record.number,
        lambda record: {"id": record.id, "score": scored(record.amount)},
    ),
    "aggregation": Expected(lambda record: record.number, totals=True),
    "processor": Expected(lambda record: record.number, totals=True),
    "session": Expected(lambda record: record.number, totals=True),
    # Rows of one key may be worked on by different tasks.
    "dedup": Expected(lambda record: record.id, lambda record: {"id": record.id}, ordered=False),
    # Either record of a pair can be the one that completes it.
    "join": Expected(lambda record: record.number if record.number >= PARTNER else None, _pair, ordered=False),
    # A user's own query: every record must be answered, wherever the query puts the answer.
    "yours": Expected(lambda record: record.number, ordered=False),
}


def compare(workload: str, sent: Sequence[Sent], answers: Sequence[Answer]) -> Delivery:
    """Compare a query's answers with what was sent. Answers of one key must be in the order of the output topic."""
    expected = EXPECTED[workload]
    asked = {each.record.number: each for each in sent}
    due = rows_due(workload, sent)
    delivery = Delivery(sent=len(sent), due=len(due), out=len(answers))
    times: Counter[int] = Counter()
    known: list[tuple[Answer, Sent]] = []
    for answer in answers:
        question = asked.get(answer.number)
        row = expected.row(question.record) if question else None
        if question is None or row is None:
            delivery.unknown.append(answer.number)
            continue
        times[row] += 1
        known.append((answer, question))
        right = expected.values(question.record)
        # A user's query has keys of its own.
        foreign = workload != "yours" and answer.key != question.record.key
        if foreign or any(answer.fields.get(name) != value for name, value in right.items()):
            delivery.wrong.append(answer.number)
    delivery.lost = sorted(due - times.keys())
    delivery.duplicates = [row for row, count in times.items() for _ in range(count - 1)]
    if expected.ordered:
        delivery.out_of_order = _out_of_order(known)
    if expected.totals:
        _compare_totals(delivery, sent, known)
    return delivery


def rows_due(workload: str, sent: Iterable[Sent]) -> set[int]:
    rows = (EXPECTED[workload].row(each.record) for each in sent)
    return {row for row in rows if row is not None}


def _out_of_order(known: Iterable[tuple[Answer, Sent]]) -> list[int]:
    """First answers only: a replay repeats rows in their order, which is a matter of duplicates."""
    newest: dict[tuple[str, int], int] = {}
    seen: set[int] = set()
    late = []
    for answer, question in known:
        if answer.number in seen:
            continue
        seen.add(answer.number)
        lane = (answer.key, question.partition)
        if answer.number < newest.get(lane, -1):
            late.append(answer.number)
        newest[lane] = max(answer.number, newest.get(lane, -1))
    return late


def _compare_totals(delivery: Delivery, sent: Iterable[Sent], known: Iterable[tuple[Answer, Sent]]) -> None:
    """Every count and sum must follow from one that came before it, and the last must be that of all records."""
    totals: dict[str, tuple[int, int]] = {}
    for each in sent:
        count, total = totals.get(each.record.key, (0, 0))
        totals[each.record.key] = (count + 1, total + each.record.amount)
    last: dict[str, tuple[int, int]] = {}
    # Partitions meet in another order after a restart, so that one count may have had several sums.
    sums: dict[tuple[str, int], set[int]] = {}
    for answer, question in known:
        count, total = answer.fields.get("count", 0), answer.fields.get("sum", 0)
        before = {0} if count == 1 else sums.get((answer.key, count - 1), set())
        if total - question.record.amount not in before:
            delivery.wrong.append(answer.number)
        sums.setdefault((answer.key, count), set()).add(total)
        delivery.regressions += count <= last.get(answer.key, (0, 0))[0]
        last[answer.key] = (count, total)
    delivery.keys = len(totals)
    delivery.wrong_keys = sorted(key for key, right in totals.items() if last.get(key) != right)


def sent_of(reads: Iterable[Read], id_field: str | None = None) -> list[Sent]:
    """What lies in the input topic is what was sent. With `id_field` they are records of the user's own variant."""
    sent = [Sent(_record(read, id_field), read.partition) for read in reads]
    return sorted(sent, key=lambda each: each.record.number)


def _record(read: Read, id_field: str | None) -> Record:
    if id_field is None:
        return Record.from_json(read.value)
    number = int(json.loads(read.value)[id_field])
    return Record(number, number, _text(read.key), 0)


def answers_of(reads: Iterable[Read], id_field: str = "number") -> list[Answer]:
    """An output record that does not say what it answers counts as unknown."""
    answers = []
    for read in reads:
        try:
            fields = json.loads(read.value)
            answers.append(Answer(_text(read.key), int(fields[id_field]), fields))
        except (ValueError, KeyError, TypeError):
            answers.append(Answer(_text(read.key), NOT_SAID))
    return answers


def _text(key: bytes | None) -> str:
    return (key or b"").decode(errors="replace")
