"""After any failures nothing is lost, rows are not repeated without need, and each key's last record is right.

Hypothesis makes up histories: which rows came in which order, who was killed when, and what of its output survived. The
specification and the real deduplicator go through the same ones.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.unit.sink import old_rule, specification
from tests.unit.sink.histories import FOLDS, histories, in_first_order, lasts, record_of, with_right_timers
from tests.unit.sink.real_deduplicator import RealDeduplicator
from tests.unit.sink.rows import Answer, Replay, Row
from tests.unit.sink.world import Aggregation, Alerts, Projection, Query, Run, Silences, World

EXAMPLES = int(os.environ.get("TAILRACE_HISTORIES", "150"))


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
        assert Counter(made) - Counter(topic) == Counter()
    found = lasts(topic)
    assert {key: found.get(key) for key in lasts(made)} == lasts(made)


@pytest.mark.parametrize("drops_duplicates", [False, True])
@pytest.mark.parametrize("fold", FOLDS)
def test_aggregations(real: RealDeduplicator, fold: str, drops_duplicates: bool) -> None:
    @histories_of
    @given(runs=histories(shuffled=drops_duplicates, epochs=not drops_duplicates))
    def holds(runs: list[Run]) -> None:
        world = World(Aggregation(FOLDS[fold], drops_duplicates=drops_duplicates), Both(real))
        assert_right(world, world.play(runs))

    holds()


@pytest.mark.parametrize("fold", FOLDS)
def test_aggregations_with_a_changing_lookup(real: RealDeduplicator, fold: str) -> None:
    @histories_of
    @given(runs=histories(versions=True, epochs=True))
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


@pytest.mark.parametrize("says_version", [False, True])
@pytest.mark.parametrize("has_key", [False, True])
def test_timers(real: RealDeduplicator, has_key: bool, says_version: bool) -> None:
    @histories_of
    @given(runs=histories(timers=True, versions=says_version, epochs=True))
    def holds(runs: list[Run]) -> None:
        world = World(Alerts(has_key, says_version), Both(real))
        assert_right(world, world.play(runs))

    holds()


def test_timers_in_their_first_order_are_written_once(real: RealDeduplicator) -> None:
    @histories_of
    @given(runs=histories(timers=True), has_key=st.booleans())
    def holds(runs: list[Run], has_key: bool) -> None:
        world = World(Alerts(has_key), Both(real))
        assert_once(world, world.play(in_first_order(runs)))

    holds()


@pytest.mark.parametrize("has_key", [False, True])
def test_timers_that_tell_what_rows_tell_are_written_once(real: RealDeduplicator, has_key: bool) -> None:
    """Whether a timer or the next row tells it, in the first run and in a replay."""

    @histories_of
    @given(runs=with_right_timers())
    def holds(runs: list[Run]) -> None:
        world = World(Silences(has_key), Both(real))
        assert contents(world.play(runs)) == contents([one.row for one in world.topic])

    holds()


def test_timers_that_are_wrong_hide_nothing(real: RealDeduplicator) -> None:
    """Rows that look alike are taken for each other, but only as often as the output holds them."""

    @histories_of
    @given(runs=histories(timers=True, epochs=True), counts=st.booleans())
    def holds(runs: list[Run], counts: bool) -> None:
        world = World(Silences(counts=counts), Both(real))
        made, topic = world.play(runs), [one.row for one in world.topic]
        assert contents(made) <= contents(topic)
        for key, row in lasts(made).items():
            assert lasts(topic)[key].content == row.content

    holds()


def test_rows_in_their_first_order_are_written_once(real: RealDeduplicator) -> None:
    """The order of rows is restored behind a shuffle, so this is what happens unless something else changes."""

    @histories_of
    @given(runs=histories(), fold=st.sampled_from(sorted(FOLDS)), has_key=st.booleans())
    def holds(runs: list[Run], fold: str, has_key: bool) -> None:
        world = World(Aggregation(FOLDS[fold], has_key=has_key), Both(real))
        assert_once(world, world.play(in_first_order(runs)))

    holds()


def test_rows_without_state_are_written_once(real: RealDeduplicator) -> None:
    """As first computed, whatever a lookup says later and in whatever order the rows of a record come."""

    @histories_of
    @given(runs=histories(versions=True, epochs=True), looks_up=st.booleans())
    def holds(runs: list[Run], looks_up: bool) -> None:
        world = World(Projection(looks_up), Both(real))
        made = world.play(runs)
        assert Counter(record_of(one.row) for one in world.topic) == Counter(map(record_of, made))

    holds()


@pytest.mark.parametrize("compacted", [False, True])
@pytest.mark.parametrize("fold", ["max", "first", "count"])
def test_aggregations_whose_epochs_overlap(real: RealDeduplicator, fold: str, compacted: bool) -> None:
    """The first rows of an epoch stand among the last ones of the epoch before, which is committed."""

    @histories_of
    @given(runs=histories(overlapping=True, compacts=compacted))
    def holds(runs: list[Run]) -> None:
        world = World(Aggregation(FOLDS[fold]), Both(real), compacted=compacted)
        assert_right(world, world.play(runs))

    holds()


def test_rows_without_state_are_written_once_if_epochs_overlap(real: RealDeduplicator) -> None:
    @histories_of
    @given(runs=histories(versions=True, overlapping=True), looks_up=st.booleans())
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
    "a timer": (Alerts(), histories(timers=True)),
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


def contents(rows: list[Row]) -> Counter[tuple[str | None, str]]:
    return Counter((row.key, row.content) for row in rows)


def assert_once(world: World, made: list[Row]) -> None:
    assert Counter(one.row for one in world.topic) == Counter(made)
