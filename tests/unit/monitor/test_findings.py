"""Findings: each cause is found in the figures that show it, and a healthy query has none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tailrace.contract.snapshot import (
    BadRecords,
    Boundary,
    Distribution,
    EpochFigures,
    ExecutorFigures,
    PartitionFigures,
    PartitionWindow,
    QueryFigures,
    QueryStatus,
    QueryWindow,
    StageFigures,
    StageWindow,
    TaskFigures,
)
from tailrace.monitor.findings import find
from tailrace.monitor.rolling import STEADY

NOW = 1_794_800_000.0


def spread(p50: float, p99: float | None = None, longest: float | None = None) -> Distribution:
    p99 = p50 if p99 is None else p99
    longest = p99 if longest is None else longest
    return Distribution(1000, p50, p50, p99, p99, longest, longest)


def window(**figures: Any) -> QueryWindow:
    calm: dict[str, Any] = {
        "seconds": 60.0,
        "rows_in": 6000,
        "rows_out": 6000,
        "rows_in_per_s": 100.0,
        "rows_out_per_s": 100.0,
        "source_queue": spread(1, 3),
        "processing": spread(1, 4),
        "end_to_end": spread(4, 9),
        "sink": spread(0.1, 0.3),
        "acknowledgement": spread(1, 3),
        "python": None,
        "shuffle": None,
    }
    return QueryWindow(**calm | figures)


def task(
    partition: int, rate: float, *, shuffle: Distribution | None = None, python: Distribution | None = None
) -> TaskFigures:
    return TaskFigures(partition, {STEADY: StageWindow(rate, None, shuffle, python)})


def stage(number: int, *tasks: TaskFigures, inputs: tuple[int, ...] = ()) -> StageFigures:
    return StageFigures(number, inputs, (), (), None, {}, tasks)


def partition(
    number: int, rate: float, *, lag_rows: int = 0, end_to_end: Distribution | None = None
) -> PartitionFigures:
    part = PartitionWindow(rate, None, None, end_to_end or spread(4, 9))
    return PartitionFigures("payments", number, None, None, lag_rows, {"10s": part, STEADY: part})


def boundary(at: float, pause_ms: float) -> Boundary:
    return Boundary(at, 3, pause_ms, None, overlapped=False, reason=None)


CALM = window()


def query(*, window: QueryWindow = CALM, **changes: Any) -> QueryFigures:
    calm = QueryFigures(
        id="id",
        run_id="run",
        name="payments",
        status=QueryStatus.RUNNING,
        starting_reason=None,
        error=None,
        started_at=NOW - 600,
        ended_at=None,
        lag_rows=0,
        epoch=EpochFigures(1, NOW - 10, 300.0),
        boundaries=(),
        pause=None,
        windows={"10s": window, STEADY: window},
        partitions=(partition(0, 50), partition(1, 50)),
        stages=(stage(0, task(0, 50), task(1, 50)),),
        state=(),
        bad_records=BadRecords(0, None, None),
        findings=(),
    )
    return replace(calm, **changes)


def executor(**changes: Any) -> ExecutorFigures:
    return replace(ExecutorFigures("1", 0.3, 0.2, 1, 2, 2, 6.0, 4.0, 0.4, 2.0), **changes)


LAGGING = QueryStatus.LAGGING
SHUFFLED = (
    stage(0, task(0, 50), task(1, 50)),
    stage(1, task(0, 95, shuffle=spread(5, 80)), task(1, 5, shuffle=spread(1, 3)), inputs=(0,)),
)
TO_REDIS = replace(stage(0, task(0, 50), task(1, 50)), sink="redis")
PYTHON = (stage(0, task(0, 50, python=spread(1)), task(1, 50, python=spread(30, 60))),)

CASES: dict[str, tuple[QueryFigures, list[ExecutorFigures], list[str]]] = {
    "TAILRACE_BAD_RECORDS": (
        query(bad_records=BadRecords(3, NOW - 5, "bad cast")),
        [executor()],
        ["3 records could not be processed and were skipped", "bad cast"],
    ),
    "TAILRACE_LAGGING": (
        query(status=LAGGING, lag_rows=5000, window=window(source_queue=spread(900), end_to_end=spread(950))),
        [executor()],
        ["5,000 rows", "50.0 s of work", "backlog"],
    ),
    "TAILRACE_PARTITION_NOT_READ": (
        query(status=LAGGING, lag_rows=40, partitions=(partition(0, 50), partition(1, 0.0, lag_rows=40))),
        [executor()],
        ["payments/1", "40 rows are waiting there", "slot"],
    ),
    "TAILRACE_HOT_PARTITION": (
        query(partitions=(partition(0, 90, end_to_end=spread(20, 90)), *(partition(n, 2) for n in range(1, 6)))),
        [executor()],
        ["payments/0", "90%", "90 ms"],
    ),
    "TAILRACE_SKEWED_KEYS": (query(stages=SHUFFLED), [executor()], ["stage 1", "95%", "partition 0", "80 ms"]),
    "TAILRACE_GC_PAUSES": (query(), [executor(gc_max_ms=180.0)], ["executor 1", "180 ms", "memory"]),
    "TAILRACE_SLOW_SINK": (
        query(window=window(sink=spread(30, 80), end_to_end=spread(35, 90))),
        [executor()],
        ["80 ms (p99)", "90 ms"],
    ),
    "TAILRACE_SLOW_STORE": (
        query(window=window(acknowledgement=spread(210, 230), end_to_end=spread(215, 240)), stages=(TO_REDIS,)),
        [executor()],
        ["210 ms (p50)", "Redis", "SLOWLOG"],
    ),
    "TAILRACE_SLOW_BROKER": (
        query(
            window=window(
                source_queue=spread(1, 3, 1000), acknowledgement=spread(1, 3, 950), end_to_end=spread(4, 9, 2000)
            )
        ),
        [executor()],
        ["950 ms", "1.0 s"],
    ),
    "TAILRACE_LATE_RECORDS": (
        query(window=window(source_queue=spread(50, 60), end_to_end=spread(54, 66))),
        [executor()],
        ["50 ms", "linger.ms"],
    ),
    "TAILRACE_EPOCH_BOUNDARIES": (
        query(
            boundaries=(boundary(NOW - 20, 420.0),),
            window=window(source_queue=spread(1, 3, 430), end_to_end=spread(4, 9, 440)),
        ),
        [executor()],
        ["420 ms", "5 minutes"],
    ),
    "TAILRACE_TOO_FEW_CORES": (query(), [executor(cpu_load=0.99, hiccup_p99_ms=14.0)], ["99%", "14 ms"]),
    "TAILRACE_SLOW_PYTHON": (
        query(
            stages=PYTHON,
            window=window(python=spread(30, 60), processing=spread(31, 62), end_to_end=spread(34, 70)),
        ),
        [executor()],
        ["60 ms (p99)", "stage 0", "partition 1"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("code", CASES)
def test_a_cause_is_named_with_its_evidence(code: str) -> None:
    figures, executors, words = CASES[code]
    found = {finding.code: finding for finding in find(figures, executors, NOW)}
    assert code in found
    text = " ".join([found[code].title, found[code].detail, found[code].fix])
    assert [word for word in words if word not in text] == []


@pytest.mark.parametrize("code", CASES)
def test_it_is_the_first_that_is_named(code: str) -> None:
    figures, executors, _ = CASES[code]
    assert find(figures, executors, NOW)[0].code == code


def test_a_calm_query_has_no_finding() -> None:
    assert find(query(), [executor()], NOW) == []


def test_one_slow_row_among_a_thousand_is_named() -> None:
    stages = (stage(0, task(0, 50, python=spread(1, 2, 1000)), task(1, 50, python=spread(1, 2))),)
    figures = query(
        stages=stages,
        window=window(python=spread(1, 2, 1000), processing=spread(1, 4, 1001), end_to_end=spread(4, 9, 1004)),
    )
    [finding] = find(figures, [executor()], NOW)
    assert finding.code == "TAILRACE_SLOW_PYTHON"
    assert "stage 0, partition 0" in finding.detail


def test_a_query_that_has_ended_or_has_no_rows_has_none() -> None:
    loud = CASES["TAILRACE_SLOW_PYTHON"][0]
    assert find(replace(loud, status=QueryStatus.ENDED), [executor()], NOW) == []
    assert find(query(window=window(end_to_end=None)), [executor(gc_max_ms=900.0)], NOW) == []


def test_what_keeps_the_query_from_reading_is_not_blamed_on_kafka() -> None:
    """The rows behind a pause of ours are old when they are read, and nobody else is to blame."""
    waiting = window(source_queue=spread(1, 3, 1000), acknowledgement=spread(1, 3, 300), end_to_end=spread(4, 9, 1010))
    for own, executors in (
        (query(boundaries=(boundary(NOW - 5, 990.0),), window=waiting), [executor()]),
        (query(window=waiting), [executor(gc_max_ms=900.0)]),
        (query(window=replace(waiting, python=spread(1, 2, 990)), stages=PYTHON), [executor()]),
        (query(window=replace(waiting, sink=spread(1, 2, 990))), [executor()]),
    ):
        codes = {finding.code for finding in find(own, executors, NOW)}
        assert codes.isdisjoint({"TAILRACE_LATE_RECORDS", "TAILRACE_SLOW_BROKER"})
        assert codes


def test_an_idle_partition_beside_a_busy_one_is_not_stuck() -> None:
    """A transaction's marker counts as a row behind, and is never read."""
    busy, idle = partition(0, 5000, lag_rows=100_000), partition(1, 0.0, lag_rows=1)
    found = find(query(status=LAGGING, lag_rows=100_001, partitions=(busy, idle)), [executor()], NOW)
    assert "TAILRACE_PARTITION_NOT_READ" not in {finding.code for finding in found}


def test_a_few_rows_are_no_skew() -> None:
    partitions = (partition(0, 0.05), *(partition(number, 0.02) for number in range(1, 50)))
    assert find(query(partitions=partitions), [executor()], NOW) == []


def test_a_backlog_is_told_though_nothing_has_been_delivered() -> None:
    figures = query(status=LAGGING, lag_rows=5000, window=window(end_to_end=None))
    assert [finding.code for finding in find(figures, [executor()], NOW)] == ["TAILRACE_LAGGING"]


def test_a_store_that_is_slow_is_named_although_the_backlog_is_most_of_the_latency() -> None:
    slow = window(
        source_queue=spread(9000), acknowledgement=spread(210), sink=spread(0.1, 0.2, 400), end_to_end=spread(9300)
    )
    # While a query lags, there is no steady minute.
    nothing = window(source_queue=None, processing=None, end_to_end=None, sink=None, acknowledgement=None)
    figures = query(status=LAGGING, lag_rows=9000, stages=(TO_REDIS,))
    found = find(replace(figures, windows={"10s": slow, STEADY: nothing}), [executor()], NOW)
    assert {"TAILRACE_SLOW_STORE", "TAILRACE_LAGGING"} == {finding.code for finding in found}
    [store] = [finding for finding in found if finding.code == "TAILRACE_SLOW_STORE"]
    assert "reads no faster" in store.detail


def test_large_batches_of_a_query_that_catches_up_are_not_slow() -> None:
    figures = query(status=LAGGING, lag_rows=9000, window=window(acknowledgement=spread(40, 150)), stages=(TO_REDIS,))
    assert "TAILRACE_SLOW_STORE" not in {finding.code for finding in find(figures, [executor()], NOW)}


def test_a_store_is_not_slow_if_it_answers_at_once_or_the_query_takes_longer() -> None:
    kafka = replace(TO_REDIS, sink="exactlyonce")
    for figures, stages in (
        (window(acknowledgement=spread(2, 90)), TO_REDIS),
        (window(acknowledgement=spread(60, 200), processing=spread(80, 300), end_to_end=spread(150, 500)), TO_REDIS),
        (window(acknowledgement=spread(210), end_to_end=spread(215)), kafka),
    ):
        codes = {finding.code for finding in find(query(window=figures, stages=(stages,)), [executor()], NOW)}
        assert "TAILRACE_SLOW_STORE" not in codes
