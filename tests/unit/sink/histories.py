"""Histories of a query: what was read in which order, who was killed when, and what of its output survived."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain, product
from typing import Any

from hypothesis import strategies as st

from tests.unit.sink.rows import Row
from tests.unit.sink.world import OUTPUT_PARTITIONS, TASKS, TIMERS, Record, Run

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
) -> list[Run]:
    """Up to three runs that are killed, and one that commits. Any of them may have committed an epoch before."""

    def commits(records: int) -> int:
        return draw(st.integers(0, records)) if epochs else 0

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
            )
        )
    order = draw(st.permutations(list(chain(*sources)))) if shuffled else merged(draw, sources)
    version = draw(st.integers(0, 2)) if versions else 0
    return [*runs, Run(tuple(order), version=version, commits=commits(len(order)), expecting=draw(st.integers(0, 5)))]


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
