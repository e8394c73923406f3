"""Histories of a query: what was read in which order, who was killed when, and what of its output survived."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain, product
from typing import Any

from hypothesis import strategies as st

from tests.unit.sink.rows import Row
from tests.unit.sink.world import OUTPUT_PARTITIONS, TASKS, TIMERS, Record, Run, is_after_silence

KEYS = ("a", "b", "c")

FOLDS: dict[str, Callable[[Any, int], Any]] = {
    "max": lambda before, value: value if before is None else max(before, value),
    "min": lambda before, value: value if before is None else min(before, value),
    "first": lambda before, value: value if before is None else before,
    "last": lambda before, value: value,
    "count": lambda before, value: (before or 0) + 1,
    "sum": lambda before, value: (before or 0) + value,
}


@st.composite
def inputs(draw: st.DrawFn, timers: bool = False) -> list[list[Record]]:
    """The source partitions, and the timers that were set before the epoch."""
    sources = []
    for partition in range(2):
        values = draw(st.lists(st.tuples(st.sampled_from(KEYS), st.integers(0, 5)), max_size=5))
        sources.append([Record(partition, offset, *record) for offset, record in enumerate(values)])
    if timers:
        times = draw(st.lists(st.tuples(st.sampled_from(KEYS), st.integers(0, 50)), max_size=3, unique=True))
        sources += [[Record(TIMERS, 0, key, time)] for key, time in times]
    return sources


def merged(draw: st.DrawFn, sources: list[list[Record]]) -> list[Record]:
    """Each source in its order, in any order with the others."""
    left = [list(source) for source in sources if source]
    order = []
    while left:
        source = left[draw(st.integers(0, len(left) - 1))]
        order.append(source.pop(0))
        left = [each for each in left if each]
    return order


@st.composite
def histories(
    draw: st.DrawFn,
    *,
    timers: bool = False,
    versions: bool = False,
    shuffled: bool = False,
    compacts: bool = False,
    epochs: bool = False,
    overlapping: bool = False,
) -> list[Run]:
    """Up to three runs that are killed, and one that commits. Any of them may have committed an epoch before."""

    def commits(records: int) -> int:
        return draw(st.integers(0, records)) if epochs or overlapping else 0

    def overlaps() -> int | None:
        return draw(st.integers(0, 3)) if overlapping else None

    sources = draw(inputs(timers))
    runs = []
    for _ in range(draw(st.integers(1, 3))):
        order = draw(st.permutations(list(chain(*sources)))) if shuffled else merged(draw, sources)
        killed_after = draw(st.integers(0, len(order)))
        survivors = {place: draw(st.integers(0, 10)) for place in product(range(TASKS), range(OUTPUT_PARTITIONS))}
        runs.append(
            Run(
                tuple(order[:killed_after]),
                version=draw(st.integers(0, 2)) if versions else 0,
                survivors=survivors,
                compacts=compacts and draw(st.booleans()),
                commits=commits(killed_after),
                finishes=draw(st.booleans()),
                expecting=draw(st.integers(0, 5)),
                overlaps=overlaps(),
            )
        )
    order = draw(st.permutations(list(chain(*sources)))) if shuffled else merged(draw, sources)
    version = draw(st.integers(0, 2)) if versions else 0
    return [*runs, Run(tuple(order), version=version, commits=commits(len(order)), expecting=draw(st.integers(0, 5)))]


@st.composite
def with_right_timers(draw: st.DrawFn) -> list[Run]:
    """Histories whose rows come in one order, and whose timers fire only if the next row of their key will say so too.

    The first run fires them when it likes. Later ones first read what earlier runs have read, as the plugin does.
    """
    order = merged(draw, draw(inputs()))
    lengths = [draw(st.integers(0, len(order))) for _ in range(draw(st.integers(1, 3)))] + [len(order)]
    runs = []
    for number, length in enumerate(lengths):
        is_last = number == len(lengths) - 1
        by_place: dict[int, list[Record]] = {}
        for at, record in enumerate(order[:length]):
            following = [(later, one) for later, one in enumerate(order) if later > at and one.key == record.key]
            if following and not is_after_silence(following[0][1]):
                continue
            until = min(following[0][0] if following else length, length)
            if number == 0:
                place = draw(st.integers(at + 1, until))
            elif until == length and length >= max(lengths[:number]):
                place = length
            else:
                continue
            # Time goes on: in the end, each key is silent.
            if (is_last and not following) or draw(st.booleans()):
                by_place.setdefault(place, []).append(Record(TIMERS, at, record.key, 0))
        played = [one for at in range(length + 1) for one in [*by_place.get(at, []), *order[at:length][:1]]]
        survivors = {place: draw(st.integers(0, 10)) for place in product(range(TASKS), range(OUTPUT_PARTITIONS))}
        runs.append(
            Run(
                tuple(played),
                survivors=None if is_last else survivors,
                commits=draw(st.integers(0, len(played))) if number == 0 else 0,
                expecting=len(order) * 3,
            )
        )
    return runs


def lasts(rows: list[Row]) -> dict[str, Row]:
    """The last row of each key."""
    return {row.key: row for row in rows if row.key is not None}


def in_first_order(runs: list[Run]) -> list[Run]:
    """The same runs, but each gets the records in the order of the last one."""
    order = runs[-1].order
    return [Run(order[: len(run.order)], survivors=run.survivors, expecting=len(order)) for run in runs]


def record_of(row: Row) -> tuple[int, int, int]:
    assert row.identity is not None
    return row.identity.record
