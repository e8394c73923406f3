"""The table of docs/guide/guarantees.md against the model: what it promises holds, what it leaves open happens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.unit.sink import specification
from tests.unit.sink.histories import FOLDS, histories, in_first_order, lasts, record_of, with_right_timers
from tests.unit.sink.rows import Row
from tests.unit.sink.world import Aggregation, Alerts, Projection, Query, Run, Silences, World

PAGE = Path(__file__).resolve().parents[3] / "docs" / "guide" / "guarantees.md"
SINK = "`tailrace-kafka`"
HISTORIES = 60
# Matches are recognized by content only, without regard to their order.
NOT_IN_THE_MODEL = "join of two streams"


@dataclass(frozen=True)
class Found:
    """What went wrong in any of the histories."""

    lost: bool = False
    duplicated: bool = False
    last_wrong: bool = False


@dataclass(frozen=True)
class Case:
    """A line of the table in the model: the query, and the histories under which the line's condition holds."""

    query: Query
    runs: st.SearchStrategy[list[Run]]
    identify: Callable[[Row], object] = lambda row: row


def first_order(**kinds: bool) -> st.SearchStrategy[list[Run]]:
    return histories(**kinds).map(in_first_order)


def content_of(row: Row) -> object:
    """Of a row that a timer or a record makes."""
    return row.key, row.content


# By the beginning of a line's first cell.
ONCE: dict[str, list[Case]] = {
    "projections, filters": [Case(Projection(), histories(), record_of)],
    "the same": [Case(Projection(), histories(), record_of)],
    "the same, with `rand()`": [Case(Projection(looks_up=True), histories(versions=True), record_of)],
    "aggregation, `dropDuplicates`": [Case(Aggregation(fold), first_order()) for fold in FOLDS.values()],
    "session windows: `open`": [Case(Aggregation(FOLDS["count"]), first_order())],
    "rows made by time": [
        *(Case(Alerts(has_key), first_order(timers=True)) for has_key in (True, False)),
        *(Case(Silences(has_key), with_right_timers(), content_of) for has_key in (True, False)),
    ],
}
NOT_ALWAYS: dict[str, list[Case]] = {
    "state, then another shuffle": [Case(Aggregation(FOLDS["max"], drops_duplicates=True), histories(shuffled=True))],
    "rows made by time": [Case(Alerts(), histories(timers=True, epochs=True))],
}


def lines() -> list[tuple[str, str]]:
    """The query of each line about our sink, and what holds after a failure."""
    table = PAGE.read_text(encoding="utf-8").split("## What holds", 1)[1].split("\n\n|", 1)[1].split("\n\n", 1)[0]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table.splitlines()[2:]]
    return [(query, holds) for query, sink, holds, *_ in cells if sink.startswith(SINK)]


def find(cases: list[Case]) -> Found:
    found: Counter[str] = Counter()
    for case in cases:
        search(case, found)
    return Found(*(found[name] > 0 for name in ("lost", "duplicated", "last_wrong")))


def search(case: Case, found: Counter[str]) -> None:
    @settings(
        max_examples=HISTORIES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(runs=case.runs)
    def look(runs: list[Run]) -> None:
        world = World(case.query, specification.decide)
        made = Counter(map(case.identify, world.play(runs)))
        topic = [one.row for one in world.topic]
        written = Counter(map(case.identify, topic))
        found["lost"] += (made - written).total()
        found["duplicated"] += (written - made).total()
        if case.query.stateful:
            last = lasts(topic)
            for key, row in lasts(world.made).items():
                found["last_wrong"] += key not in last or case.identify(last[key]) != case.identify(row)

    look()


def cases_for(query: str, cases: dict[str, list[Case]]) -> list[Case]:
    """Those with the longest name that the line begins with."""
    names = [name for name in cases if query.startswith(name)]
    return cases[max(names, key=len)] if names else []


PROMISES = [(query, holds) for query, holds in lines() if not holds.startswith("refused") and query != "any"]


def test_the_table_is_found() -> None:
    assert len(PROMISES) >= 8
    for name in {**ONCE, **NOT_ALWAYS}:
        assert any(query.startswith(name) for query, _ in PROMISES), f"no line of the table begins with {name}"


@pytest.mark.parametrize(("query", "holds"), PROMISES)
def test_a_line_says_what_the_model_does(query: str, holds: str) -> None:
    if NOT_IN_THE_MODEL in query:
        return
    once, not_always = cases_for(query, ONCE), cases_for(query, NOT_ALWAYS)
    assert once or not_always, "no case of the model stands for this line"
    assert holds.startswith("**each") == bool(once)
    if once:
        assert find(once) == Found()
    assert ("can be duplicated" in holds) == bool(not_always)
    if not_always:
        assert "lost" in holds
        assert "the last record of each key right" in holds
        assert find(not_always) == Found(duplicated=True)
