"""After any failures nothing is lost, rows are not repeated without need, and each key's last record is right.

Hypothesis makes up histories: which rows came in which order, who was killed when, and what of its output survived. The
specification and the real deduplicator go through the same ones.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain, product
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.unit.sink import old_rule, specification
from tests.unit.sink.real_deduplicator import RealDeduplicator
from tests.unit.sink.rows import Answer, Replay, Row
from tests.unit.sink.world import (
    OUTPUT_PARTITIONS,
    TASKS,
    TIMERS,
    Aggregation,
    Alerts,
    Projection,
    Query,
    Record,
    Run,
    World,
)

EXAMPLES = int(os.environ.get("TAILRACE_HISTORIES", "150"))
KEYS = ("a", "b", "c")

FOLDS: dict[str, Callable[[Any, int], Any]] = {
    "max": lambda before, value: value if before is None else max(before, value),
    "min": lambda before, value: value if before is None else min(before, value),
    "first": lambda before, value: value if before is None else before,
    "last": lambda before, value: value,
    "count": lambda before, value: (before or 0) + 1,
    "sum": lambda before, value: (before or 0) + value,
}


@pytest.fixture(scope="module")
def real() -> Iterator[RealDeduplicator]:
    with RealDeduplicator() as deduplicator:
        yield deduplicator


class Both:
    """The real deduplicator, whose every answer must be the specification's."""

    def __init__(self, real: RealDeduplicator) -> None:
        self.real = real

    def __call__(self, replay: Replay) -> Answer:
        answer = self.real.decide(replay)
        assert answer == specification.decide(replay)
        return answer


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
    draw: st.DrawFn, *, timers: bool = False, versions: bool = False, shuffled: bool = False, compacts: bool = False
) -> list[Run]:
    """Up to three runs that are killed, and one that commits."""
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
            )
        )
    order = draw(st.permutations(list(chain(*sources)))) if shuffled else merged(draw, sources)
    return [*runs, Run(tuple(order), version=draw(st.integers(0, 2)) if versions else 0)]


def lasts(rows: list[Row]) -> dict[str, Row]:
    """The last row of each key."""
    return {row.key: row for row in rows if row.key is not None}


def record_of(row: Row) -> tuple[int, int, int]:
    assert row.identity is not None
    return row.identity.record


def histories_of(test: Callable[..., None]) -> Callable[..., None]:
    """The number of histories is that of TAILRACE_HISTORIES."""
    return settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=EXAMPLES < 1000,
        database=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )(test)


def assert_right(world: World, made: list[Row]) -> None:
    """Nothing is lost, and the last record of a key is the last row that was made for it."""
    topic = [one.row for one in world.topic]
    if not world.compacted:
        missing = [row for row in made if row not in topic]
        assert missing == []
    found = lasts(topic)
    assert {key: found.get(key) for key in lasts(made)} == lasts(made)


@pytest.mark.parametrize("drops_duplicates", [False, True])
@pytest.mark.parametrize("fold", FOLDS)
def test_aggregations(real: RealDeduplicator, fold: str, drops_duplicates: bool) -> None:
    @histories_of
    @given(runs=histories(shuffled=drops_duplicates))
    def holds(runs: list[Run]) -> None:
        world = World(Aggregation(FOLDS[fold], drops_duplicates=drops_duplicates), Both(real))
        assert_right(world, world.play(runs))

    holds()


@pytest.mark.parametrize("fold", FOLDS)
def test_aggregations_with_a_changing_lookup(real: RealDeduplicator, fold: str) -> None:
    @histories_of
    @given(runs=histories(versions=True))
    def holds(runs: list[Run]) -> None:
        world = World(Aggregation(FOLDS[fold], looks_up=True), Both(real))
        assert_right(world, world.play(runs))

    holds()


@pytest.mark.parametrize("fold", ["max", "last", "count"])
def test_aggregations_into_a_compacted_topic(real: RealDeduplicator, fold: str) -> None:
    @histories_of
    @given(runs=histories(versions=True, compacts=True))
    def holds(runs: list[Run]) -> None:
        world = World(Aggregation(FOLDS[fold], looks_up=True), Both(real), compacted=True)
        assert_right(world, world.play(runs))

    holds()


@pytest.mark.parametrize("identified", [False, True])
def test_timers(real: RealDeduplicator, identified: bool) -> None:
    @histories_of
    @given(runs=histories(timers=True))
    def holds(runs: list[Run]) -> None:
        world = World(Alerts(identified), Both(real))
        assert_right(world, world.play(runs))

    holds()


def test_rows_in_their_first_order_are_written_once(real: RealDeduplicator) -> None:
    """The order of rows is restored behind a shuffle, so this is what happens unless something else changes."""

    @histories_of
    @given(runs=histories(), fold=st.sampled_from(sorted(FOLDS)), has_key=st.booleans())
    def holds(runs: list[Run], fold: str, has_key: bool) -> None:
        order = runs[-1].order
        same = [Run(order[: len(run.order)], survivors=run.survivors) for run in runs]
        world = World(Aggregation(FOLDS[fold], has_key=has_key), Both(real))
        assert_once(world, world.play(same))

    holds()


def test_rows_without_state_are_written_once(real: RealDeduplicator) -> None:
    """As first computed, whatever a lookup says later and in whatever order the rows of a record come."""

    @histories_of
    @given(runs=histories(versions=True), looks_up=st.booleans())
    def holds(runs: list[Run], looks_up: bool) -> None:
        world = World(Projection(looks_up), Both(real))
        made = world.play(runs)
        assert Counter(record_of(one.row) for one in world.topic) == Counter(map(record_of, made))

    holds()


def test_rows_without_state_that_come_and_go(real: RealDeduplicator) -> None:
    """A filter that decides by chance: no row that passed is lost, and none hides a later one of its partition."""

    @histories_of
    @given(runs=histories(versions=True))
    def holds(runs: list[Run]) -> None:
        world = World(Projection(filters_by_chance=True), Both(real))
        made = world.play(runs)
        topic = [one.row for one in world.topic]
        # The rows of a record can come in another order, with other ordinals.
        assert {(record_of(row), row.content) for row in made} <= {(record_of(row), row.content) for row in topic}
        for key, last in lasts(topic).items():
            source, partition, offset = record_of(last)
            newest = [record_of(row) for row in made if row.key == key and record_of(row)[:2] == (source, partition)]
            assert not newest or offset >= max(newest)[2]

    holds()


# What the deduplicator once got wrong: a row made by a timer, a new row before old ones, rows in another order, and a
# lookup that changes from run to run.
MISTAKES: dict[str, tuple[Query, st.SearchStrategy[list[Run]]]] = {
    "a timer": (Alerts(identified=False), histories(timers=True)),
    "two shuffles": (Aggregation(FOLDS["max"], drops_duplicates=True), histories(shuffled=True)),
    "another order": (Aggregation(FOLDS["first"]), histories()),
    "two failures": (Aggregation(FOLDS["last"], looks_up=True), histories(versions=True)),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_rule_that_ignores_the_order_is_found_out(mistake: str) -> None:
    query, runs_of = MISTAKES[mistake]

    @settings(max_examples=2000, deadline=None, derandomize=True, database=None, phases=[Phase.generate])
    @given(runs=runs_of)
    def holds(runs: list[Run]) -> None:
        world = World(query, old_rule.decide)
        assert_right(world, world.play(runs))

    with pytest.raises(AssertionError):
        holds()


def assert_once(world: World, made: list[Row]) -> None:
    assert Counter(one.row for one in world.topic) == Counter(made)
