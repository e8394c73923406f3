"""A comparison finds what was planted, and nothing between equal runs."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.bench.compare import Change, Difference, compare
from tailrace.bench.result import BenchResult, Latencies, Missing, Run
from tailrace.bench.usage import Disturbance
from tailrace.errors import TailraceError
from tests.helpers.bench_results import make_result, make_run

WORKLOADS = ("stateless", "python-per-record", "keyed-aggregate", "keyed-state", "stream-join")
SYSTEMS = ("tailrace", "micro-batch", "flink", "loop")
# What the medians of a quiet machine differ by from round to round, and what its tail does.
NOISE, TAIL_NOISE, CPU_NOISE = 0.04, 0.15, 0.025


def measured(seed: int, *, rounds: int = 3, change: Callable[[Run], Run] = lambda run: run) -> BenchResult:
    dice = random.Random(seed)
    runs = []
    for number in range(rounds):
        for workload in WORKLOADS:
            for place, system in enumerate(SYSTEMS):
                p50 = (4 + 3 * place) * (1 + dice.gauss(0, NOISE))
                p99 = 3 * p50 * (1 + abs(dice.gauss(0, TAIL_NOISE)))
                run = make_run(workload, system, number=number, p50=p50, cpu=300 * (1 + dice.gauss(0, CPU_NOISE)))
                latency = Latencies(p50, 1.5 * p50, p99, 2 * p99, 3 * p99)
                runs.append(change(replace(run, latency=latency)))
    return make_result(runs)


def slower(before: BenchResult, after: BenchResult) -> list[Difference]:
    return compare(before, after).of(Change.SLOWER)


@pytest.mark.parametrize("rounds", [1, 2, 3, 5])
def test_no_false_alarm_between_equal_runs(rounds: int) -> None:
    alarms = [
        (seed, one.figure)
        for seed in range(60)
        for one in slower(measured(seed, rounds=rounds), measured(1000 + seed, rounds=rounds))
    ]
    assert alarms == []


def sleeping(run: Run) -> Run:
    """A sleep of 5 ms in a Python function of Tailrace."""
    if (run.workload, run.system) != ("python-per-record", "tailrace"):
        return run
    latency = run.latency
    slow = Latencies(*(value + 5 for value in vars(latency).values()))
    return replace(run, latency=slow)


def burning(run: Run) -> Run:
    """A fifth more processor time."""
    if (run.workload, run.system) != ("keyed-aggregate", "tailrace"):
        return run
    return replace(run, cpu_s_per_million=run.cpu_s_per_million * 1.2)


@pytest.mark.parametrize("seed", range(20))
def test_a_planted_sleep_is_found(seed: int) -> None:
    found = slower(measured(seed), measured(500 + seed, change=sleeping))
    assert {(one.workload, one.system) for one in found} == {("python-per-record", "tailrace")}
    assert "p50 ms" in {one.figure for one in found}


def test_a_planted_burn_is_found() -> None:
    """Not in each and every noise, but nearly always, and never elsewhere."""
    hits = 0
    for seed in range(40):
        found = slower(measured(seed), measured(500 + seed, change=burning))
        assert {(one.workload, one.figure) for one in found} <= {("keyed-aggregate", "CPU s per million")}
        hits += bool(found)
    assert hits >= 36


def test_what_got_faster_is_no_alarm() -> None:
    comparison = compare(measured(1, change=sleeping), measured(2))
    assert comparison.of(Change.SLOWER) == []
    assert {one.workload for one in comparison.of(Change.FASTER)} == {"python-per-record"}


def test_one_round_finds_only_what_no_machine_does_by_itself() -> None:
    assert slower(measured(1, rounds=1), measured(2, rounds=1, change=burning)) == []
    found = slower(measured(1, rounds=1), measured(2, rounds=1, change=sleeping))
    assert {one.workload for one in found} == {"python-per-record"}


def test_disturbed_rounds_are_left_out() -> None:
    disturbed = Disturbance(steal_pct=0, foreign_pct=40)

    def one_bad_round(run: Run) -> Run:
        if run.round != 0:
            return run
        return replace(run, latency=Latencies(*(9 * v for v in vars(run.latency).values())), disturbance=disturbed)

    assert slower(measured(1), measured(2, change=one_bad_round)) == []
    comparison = compare(measured(1), measured(2, change=lambda run: replace(run, disturbance=disturbed)))
    assert {one.change for one in comparison.differences} == {Change.UNDECIDED}


def test_lost_records_and_failed_cells_are_regressions() -> None:
    before = make_result([make_run("stateless", "tailrace"), make_run("stateless", "loop")])
    lost = make_result([make_run("stateless", "tailrace", lost=3), make_run("stateless", "loop")])
    assert [one.figure for one in slower(before, lost)] == ["lost"]
    failed = Missing("stateless", "tailrace", 200, "it ended", failed=True)
    [found] = slower(before, make_result([make_run("stateless", "loop")], [failed]))
    assert (found.figure, found.system) == ("runs", "tailrace")
    assert "it ended" in found.reason


def test_only_a_chosen_system() -> None:
    both = compare(measured(1), measured(2))
    one = compare(measured(1), measured(2), ("flink",))
    assert {found.system for found in one.differences} == {"flink"}
    assert len(one.differences) * len(SYSTEMS) == len(both.differences)


def test_results_of_different_options_are_refused() -> None:
    before = measured(1)
    for other in (replace(before, checkpoint_s=3), replace(before, partitions=3), replace(before, warm_up_s=3)):
        with pytest.raises(TailraceError) as failure:
            compare(before, other)
        assert failure.value.code == "TAILRACE_BENCH_NOT_COMPARABLE"


def test_results_without_a_common_cell_are_refused() -> None:
    with pytest.raises(TailraceError) as failure:
        compare(make_result([make_run("stateless", "loop")]), make_result([make_run("stateless", "tailrace")]))
    assert failure.value.code == "TAILRACE_BENCH_NOT_COMPARABLE"


@given(st.lists(st.floats(0.1, 1e5), min_size=1, max_size=5), st.lists(st.floats(0.1, 1e5), min_size=1, max_size=5))
@settings(max_examples=50, deadline=None)
def test_it_never_calls_both_directions_slower(old: list[float], new: list[float]) -> None:
    def result(values: list[float]) -> BenchResult:
        return make_result([make_run("stateless", "loop", number=n, p50=value) for n, value in enumerate(values)])

    assert not (slower(result(old), result(new)) and slower(result(new), result(old)))
    assert slower(result(old), result(old)) == []
