"""What each workload must write, computed from the input in plain Python: rows, values, last records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tailrace.chaos.hard_queries import GONE, PARTS_OF_VERSION, SILENT
from tailrace.chaos.records import Record, is_last_of_short_life, level, record, short_lived_key
from tailrace.chaos.workloads import PARTNER, doubled, passes, scored


@dataclass(frozen=True)
class Sent:
    """An input record and where it lies."""

    record: Record
    partition: int
    offset: int = -1


@dataclass(frozen=True)
class Answer:
    """An output record. Answers of one key are in one partition of the output, and so in an order."""

    key: str
    number: int
    fields: dict[str, Any] = field(default_factory=dict)


Truth = dict[str, dict[str, set[Any]]]
"""For each key, and each field of its last record: the values that are right. Several if chance decides among them."""


@dataclass(frozen=True)
class Expected:
    """What a workload makes of a record."""

    rows: Callable[[Record], tuple[int, ...]]
    """What identifies the rows that a record must give."""
    row_field: str | None = None
    """Where an answer names its row; none if a record has one row only."""
    values: Callable[[Record], dict[str, int]] = lambda record: {}
    """The fields of its answer that depend only on the record."""
    possible: Callable[[Record, dict[str, Any]], bool] = lambda record, fields: True
    """Whether an answer can be right at all, where its values depend on other records too."""
    key: Callable[[Record], str] = lambda record: record.key
    ordered: bool = True
    totals: bool = False
    """Whether answers have a running count and sum of their key."""
    rises: tuple[str, ...] = ()
    """Fields that never fall while a key lasts."""
    falls: tuple[str, ...] = ()
    last: Callable[[Sequence[Sent]], Truth] | None = None
    """The last record of each key; none if chance decides."""
    by_time: Callable[[Answer], str | None] = lambda answer: None
    """What identifies a row that a timer made; none if a record made it."""


def own_number(record: Record) -> tuple[int, ...]:
    return (record.number,)


def by_short_lived_key(record: Record) -> str:
    return short_lived_key(record.number)


def _pair(second: Record) -> dict[str, int]:
    return {"partner": second.number - PARTNER, "sum": record(second.number - PARTNER).amount + second.amount}


def _last_numbers(key_of: Callable[[Record], str], passes: Callable[[Record], bool] = lambda record: True) -> Any:
    """The last record is one of the newest: that of any partition, as their rows may pass each other."""

    def truth(sent: Sequence[Sent]) -> Truth:
        newest: dict[tuple[str, int], int] = {}
        for each in sent:
            if passes(each.record):
                newest[key_of(each.record), each.partition] = each.record.number
        found: Truth = {}
        for (key, _), number in newest.items():
            found.setdefault(key, {}).setdefault("number", set()).add(number)
        return found

    return truth


def _firsts_and_lasts(sent: Sequence[Sent]) -> Truth:
    found: Truth = _last_numbers(by_short_lived_key)(sent)
    oldest: dict[tuple[str, int], int] = {}
    for each in sent:
        oldest.setdefault((by_short_lived_key(each.record), each.partition), each.record.number)
    for (key, _), number in oldest.items():
        found[key].setdefault("first", set()).add(number)
    return found


def _totals(sent: Iterable[Sent]) -> Truth:
    totals: dict[str, tuple[int, int]] = {}
    for each in sent:
        count, total = totals.get(each.record.key, (0, 0))
        totals[each.record.key] = (count + 1, total + each.record.amount)
    return {key: {"count": {count}, "sum": {total}} for key, (count, total) in totals.items()}


def _extremes_of(identity: Callable[[Record], int]) -> Callable[[Sequence[Sent]], Truth]:
    def truth(sent: Sequence[Sent]) -> Truth:
        levels: dict[str, list[int]] = {}
        for number in {identity(each.record) for each in sent}:
            levels.setdefault(short_lived_key(number), []).append(level(number))
        return {key: {"max": {max(found)}, "min": {min(found)}} for key, found in levels.items()}

    return truth


def _within_extremes(number: int, fields: dict[str, Any]) -> bool:
    try:
        return bool(fields["min"] <= level(number) <= fields["max"])
    except (KeyError, TypeError):
        return False


def _gone(sent: Sequence[Sent]) -> Truth:
    """Keys that had their last record. The others are silent or not, as the clock has it."""
    ended = {by_short_lived_key(each.record) for each in sent if is_last_of_short_life(each.record.number)}
    return {key: {"status": {GONE}} for key in ended}


def _silence(answer: Answer) -> str | None:
    return f"{answer.key}@{answer.fields.get('due')}" if answer.fields.get("status") == SILENT else None


def parts_of(record: Record, version: int) -> list[str]:
    return [f"{record.number}{part}" for part in PARTS_OF_VERSION[version]]


EXTREMES = Expected(
    own_number,
    possible=lambda record, fields: _within_extremes(record.number, fields),
    key=by_short_lived_key,
    rises=("max",),
    falls=("min",),
    last=_extremes_of(lambda record: record.number),
)
EXPECTED = {
    "stateless": Expected(
        lambda record: (record.number,) if passes(record.amount) else (),
        values=lambda record: {"id": record.id, "doubled": doubled(record.amount)},
        last=_last_numbers(lambda record: record.key, lambda record: passes(record.amount)),
    ),
    "python": Expected(
        own_number,
        values=lambda record: {"id": record.id, "score": scored(record.amount)},
        last=_last_numbers(lambda record: record.key),
    ),
    "aggregation": Expected(own_number, totals=True, last=_totals),
    "processor": Expected(own_number, totals=True, last=_totals),
    "session": Expected(own_number, totals=True, last=_totals),
    # Rows of one key may be worked on by different tasks.
    "dedup": Expected(lambda record: (record.id,), values=lambda record: {"id": record.id}, ordered=False),
    # Either record of a pair can be the one that completes it.
    "join": Expected(lambda record: (record.number,) if record.number >= PARTNER else (), values=_pair, ordered=False),
    "extremes": EXTREMES,
    "firsts": Expected(own_number, key=by_short_lived_key, last=_firsts_and_lasts),
    "timers": Expected(own_number, key=by_short_lived_key, last=_gone, by_time=_silence),
    "two-shuffles": Expected(
        lambda record: (record.id,),
        values=lambda record: {"id": record.id},
        possible=lambda record, fields: _within_extremes(record.id, fields),
        key=lambda record: short_lived_key(record.id),
        ordered=False,
        rises=("max",),
        falls=("min",),
        last=_extremes_of(lambda record: record.id),
    ),
    "two-sources": Expected(
        lambda record: (2 * record.number, 2 * record.number + 1),
        row_field="row",
        possible=EXTREMES.possible,
        key=by_short_lived_key,
        rises=("max",),
        falls=("min",),
        last=EXTREMES.last,
    ),
    "compacted": Expected(
        own_number,
        values=lambda record: {"level": level(record.number)},
        key=by_short_lived_key,
        ordered=False,
        last=_last_numbers(by_short_lived_key),
    ),
    "compacted-extremes": Expected(
        own_number, possible=EXTREMES.possible, key=by_short_lived_key, ordered=False, last=EXTREMES.last
    ),
    "shared": EXTREMES,
    # A user's own query: every record must be answered, wherever the query puts the answer.
    "yours": Expected(own_number, ordered=False),
}
