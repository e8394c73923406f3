"""Why a query is not ready yet, from its `start()` until rows flow."""

from __future__ import annotations

import pytest

from tailrace.contract.live_figures import (
    EpochLaunched,
    QueryEvent,
    QueryPlanned,
    QueryStarted,
    ReadProgress,
    WarmupChanged,
)
from tailrace.contract.snapshot import Application, QueryStatus, Snapshot
from tailrace.monitor.health import health_of
from tailrace.monitor.query import QueryMonitor

NOW = 1000.0
STARTED = QueryStarted("run", "id", "scores", 999_000, real_time=True)
PLANNED = QueryPlanned("run", 60_000, (), timed=True)
UNTIMED = QueryPlanned("run", 60_000, (), timed=False)


def read(rows: int) -> ReadProgress:
    return ReadProgress(
        run="run", epoch=7, topic="in", partition=0, began_us=int(NOW * 1e6), ended_us=0, offset=rows - 1, rows=rows
    )


def launched(epoch: int) -> EpochLaunched:
    return EpochLaunched("run", epoch, 999_500)


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        ([STARTED], "its first epoch is being planned"),
        ([STARTED, PLANNED], "nothing has been read yet"),
        ([STARTED, UNTIMED], "its first epoch is being launched"),
        ([STARTED, UNTIMED, launched(0)], None),
        ([STARTED, WarmupChanged("run", 5, warming=True), PLANNED], "in short epoch 1 of its warm-up"),
        ([STARTED, WarmupChanged("run", 5, warming=True), PLANNED, launched(5)], "in short epoch 1 of its warm-up"),
        (
            [STARTED, WarmupChanged("run", 5, warming=True), PLANNED, launched(5), launched(6), launched(7)],
            "in short epoch 3 of its warm-up",
        ),
        ([STARTED, WarmupChanged("run", 5, warming=True), UNTIMED, launched(5)], "in short epoch 1 of its warm-up"),
        (
            [STARTED, WarmupChanged("run", 5, warming=True), PLANNED, WarmupChanged("run", 10, warming=False)],
            "nothing has been read yet",
        ),
    ],
)
def test_before_the_first_read(events: list[QueryEvent], reason: str | None) -> None:
    query = QueryMonitor("run", NOW)
    for event in events:
        query.apply_event(event)
    assert query.starting_reason == reason
    assert (query.status is QueryStatus.STARTING) is (reason is not None)


def test_reading_without_a_row_counts_as_ready_after_ten_seconds() -> None:
    query = QueryMonitor("run", NOW)
    query.apply_event(PLANNED)
    query.apply(NOW + 1, reads=[read(rows=0)])
    assert query.starting_reason == "no row has arrived yet"
    query.apply(NOW + 11)
    assert query.starting_reason is None
    assert query.status is QueryStatus.RUNNING


def test_the_first_row_makes_it_ready() -> None:
    query = QueryMonitor("run", NOW)
    query.apply_event(PLANNED)
    query.apply(NOW + 1, reads=[read(rows=3)])
    assert query.starting_reason is None


def test_an_ended_query_is_not_starting() -> None:
    query = QueryMonitor("run", NOW)
    query.apply_event(STARTED)
    query.end(NOW + 1)
    assert query.starting_reason is None


def test_the_health_names_the_reason() -> None:
    query = QueryMonitor("run", NOW)
    query.apply_event(STARTED)
    snapshot = Snapshot(NOW, Application("app", "name", "local[1]", "4.3.0", "0.1.0"), (), (query.figures(NOW),))
    health = health_of(snapshot)
    assert health.queries == {"starting": ("scores",)}
    assert health.reasons == {"scores": "its first epoch is being planned"}
    assert not health.is_ready
