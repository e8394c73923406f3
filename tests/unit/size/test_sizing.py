"""How big a query must be, and how often it should commit, from given figures."""

from __future__ import annotations

import math
import re
from itertools import pairwise
from typing import Any

import pytest

from tailrace import TailraceError
from tailrace.check.description import QueryShape
from tailrace.contract.query_description import Stage
from tailrace.size import (
    Load,
    Sizing,
    parse_stages,
    size_of,
)
from tailrace.size.interval import INTERVALS_S
from tailrace.size.memory import GIB, MIB
from tests.unit.size.figures import MEASURED, STATEFUL_MS, STATELESS_MS, sized


def codes(sizing: Sizing) -> list[str]:
    return [finding.code for finding in sizing.findings]


class TestSlots:
    @pytest.mark.parametrize(
        ("stages", "slots", "arithmetic"),
        [
            ("8", 8, "8"),
            ("8,20", 28, "8 + 20 = 28"),
            ("8, 20, 20", 48, "8 + 20 + 20 = 48"),
            ("10,5", 15, "10 + 5 = 15"),
        ],
    )
    def test_the_stages_add_up(self, stages: str, slots: int, arithmetic: str) -> None:
        sizing = sized(stages)
        assert (sizing.slots, sizing.arithmetic) == (slots, arithmetic)
        assert f"Task slots: {arithmetic}\n" in str(sizing)
        assert sum(stage["slots"] for stage in sizing.to_dict()["stages"]) == slots

    @pytest.mark.parametrize(("each", "executors"), [(1, 28), (4, 7), (8, 4), (27, 2), (28, 1), (100, 1)])
    def test_executors_have_room_for_all_slots(self, each: int, executors: int) -> None:
        assert sized(cores_per_executor=each).executors == executors

    def test_a_stage_whose_tasks_are_not_known(self) -> None:
        reads = Stage(0, (), ("kafka: payments",), (), None)
        with pytest.raises(TailraceError, match=r"stage 0, kafka: payments") as error:
            size_of(QueryShape((reads,)))
        assert error.value.code == "TAILRACE_BAD_SIZE"
        assert "--stages" in error.value.fix

    def test_a_query_without_stages(self) -> None:
        with pytest.raises(TailraceError) as error:
            size_of(QueryShape(()))
        assert error.value.code == "TAILRACE_BAD_SIZE"


class TestStagesByHand:
    def test_the_first_reads_and_the_others_keep_state(self) -> None:
        shape = parse_stages("8,20,30")
        assert [stage.tasks for stage in shape.stages] == [8, 20, 30]
        assert [stage.inputs for stage in shape.stages] == [(), (0,), (1,)]
        assert [stage.stateful for stage in shape.stages] == [False, True, True]
        assert not parse_stages("8").stateful

    @pytest.mark.parametrize("text", ["", "8,", "8;20", "eight", "8,0", "-8", "8.5"])
    def test_what_is_not_a_list_of_stages(self, text: str) -> None:
        with pytest.raises(TailraceError) as error:
            parse_stages(text)
        assert error.value.code == "TAILRACE_BAD_SIZE"


class TestCores:
    def test_one_for_each_slot_while_nothing_is_measured(self) -> None:
        for load in (Load(), Load(rows_per_s=1000), Load(rows_per_s_per_core=1000), MEASURED):
            sizing = size_of(parse_stages("8,20"), load)
            assert sizing.cores == 28
            assert sizing.to_dict()["cores_is_upper_bound"]
            assert "CPU cores: up to 28\n" in str(sizing)

    @pytest.mark.parametrize(("utilization", "cores"), [(1.0, 5), (0.5, 10), (0.25, 20)])
    def test_headroom_on_top_of_what_the_load_keeps_busy(self, utilization: float, cores: int) -> None:
        sizing = sized(rows_per_s=50_000, rows_per_s_per_core=10_000, utilization=utilization)
        assert (sizing.busy_cores, sizing.cores, sizing.slots) == (5.0, cores, 28)
        assert sizing.utilization == utilization

    def test_a_throughput_with_the_cores_that_it_was_measured_on(self) -> None:
        sizing = sized(rows_per_s=50_000, throughput_rows_per_s=200_000, throughput_cores=16)
        assert (sizing.busy_cores, sizing.cores) == (4.0, 8)
        # Half the cores do half of what was measured.
        assert sizing.throughput_rows_per_s == 100_000

    def test_more_cores_than_tasks_are_of_no_use(self) -> None:
        sizing = sized("8", rows_per_s=60_000, rows_per_s_per_core=10_000)
        assert (sizing.cores, sizing.wanted_cores) == (8, 12)
        assert sizing.throughput_rows_per_s == 80_000
        assert codes(sizing) == ["TAILRACE_TOO_FEW_TASKS"]

    def test_too_busy(self) -> None:
        sizing = sized("8", rows_per_s=80, throughput_rows_per_s=100)
        assert codes(sizing) == ["TAILRACE_NO_HEADROOM"]
        assert sizing.findings[0].fix.startswith("use 1.6 times the cores")


class TestMemory:
    def test_state_is_keys_times_their_bytes(self) -> None:
        sizing = sized(keys=1_000_000, state_bytes_per_key=300)
        assert sizing.state_bytes == 300_000_000
        assert sizing.state_disk_bytes == 600_000_000
        assert "1,000,000 keys × 300 bytes × 2" in " ".join(str(sizing).split())

    def test_a_row_is_as_wide_as_a_key_s_state_unless_it_is_said(self) -> None:
        assert sized(keys=10, row_bytes=70).state_bytes == 700
        assert sized(keys=10, row_bytes=70, state_bytes_per_key=30).state_bytes == 300
        assert "(assumed)" in str(sized(keys=10))
        assert "(assumed)" not in str(sized(keys=10, row_bytes=70))

    def test_the_heap_grows_with_the_tasks_and_the_rest_with_the_state(self) -> None:
        small, wide, full = sized(keys=1), sized(keys=1, cores_per_executor=28), sized(keys=700_000_000)
        assert small.executor_memory_bytes == full.executor_memory_bytes == 2 * GIB
        assert wide.executor_memory_bytes == 3 * GIB
        # Of 140 GB on seven executors each has 20.
        assert full.executor_overhead_bytes - small.executor_overhead_bytes == pytest.approx(20e9, abs=2 * MIB)

    def test_without_state_spark_s_own_overhead_does(self) -> None:
        assert sized("8").executor_overhead_bytes == 384 * MIB
        assert "memoryOverhead" not in str(sized("8"))

    def test_keys_that_nobody_counted(self) -> None:
        assert codes(sized("8,20")) == ["TAILRACE_STATE_UNKNOWN"]
        assert codes(sized("8")) == codes(sized("8,20", keys=5)) == []


class TestTradeOff:
    def test_recovery_and_boundaries(self) -> None:
        sizing = size_of(parse_stages("8,20"), MEASURED)
        assert tuple(one.interval_s for one in sizing.intervals) == INTERVALS_S
        minute = next(one for one in sizing.intervals if one.interval_s == 60)
        assert minute.rows_to_replay == 3_000_000
        assert minute.recovery_s == 15
        assert minute.catch_up_s == 20
        assert minute.boundary_share == pytest.approx(0.7 / 60)

    def test_longer_intervals_have_rarer_boundaries_and_longer_recovery(self) -> None:
        for shorter, longer in pairwise(size_of(parse_stages("8,20"), MEASURED).intervals):
            assert shorter.boundary_share > longer.boundary_share
            assert (shorter.recovery_s or 0) < (longer.recovery_s or 0) < (longer.catch_up_s or 0)
            assert shorter.clear is None or longer.clear is not None

    def test_the_query_s_own_interval_is_among_them(self) -> None:
        shape = QueryShape(parse_stages("8").stages, epoch_ms=45_000)
        sizing = size_of(shape)
        assert 45.0 in [one.interval_s for one in sizing.intervals]
        assert re.search(r"^ +45 s .*\(this query's\)$", str(sizing), re.MULTILINE)

    def test_estimates_of_the_boundary(self) -> None:
        assert (sized("8").boundary_ms, sized("8,20").boundary_ms) == (STATELESS_MS, STATEFUL_MS)
        assert sized("8").to_dict()["boundary_is_estimate"]
        measured = sized("8", boundary_ms=120)
        assert (measured.boundary_ms, measured.to_dict()["boundary_is_estimate"]) == (120, False)

    def test_a_boundary_longer_than_the_interval_meets_everybody(self) -> None:
        assert sized("8", boundary_ms=20_000).intervals[0].boundary_share == 1


class TestRecommendation:
    def test_p999_if_recovery_allows_it(self) -> None:
        sizing = sized(rows_per_s=1000, throughput_rows_per_s=100_000)
        assert sizing.recommended is not None
        assert (sizing.recommended.interval_s, sizing.recommended.clear) == (900, "p99.9")

    def test_else_p99(self) -> None:
        sizing = size_of(parse_stages("8,20"), MEASURED)
        assert sizing.recommended is not None
        assert (sizing.recommended.interval_s, sizing.recommended.clear) == (120, "p99")
        assert '.trigger(realTime="2 minutes")' in str(sizing)
        assert sizing.recommendation.startswith("the shortest that keeps boundaries out of p99, with recovery within")

    def test_nothing_has_both(self) -> None:
        sizing = sized(rows_per_s=50_000, throughput_rows_per_s=200_000, keys=1, max_recovery_s=10)
        assert sizing.recommended is None
        assert codes(sizing) == ["TAILRACE_NO_INTERVAL"]
        assert "from 2 min on" in sizing.findings[0].detail
        assert "up to 30 s" in sizing.findings[0].detail

    def test_without_a_throughput_recovery_is_not_known(self) -> None:
        sizing = sized(rows_per_s=1000)
        assert sizing.recommended is not None
        assert (sizing.recommended.interval_s, sizing.recommended.recovery_s) == (120, None)
        assert "unknown" in sizing.recommendation

    def test_a_query_that_cannot_keep_up_never_catches_up(self) -> None:
        for throughput in (99, 100):
            sizing = sized("8", rows_per_s=100, throughput_rows_per_s=throughput)
            assert sizing.recommended is None
            assert codes(sizing) == ["TAILRACE_CANNOT_KEEP_UP"]
            assert all(one.catch_up_s is None for one in sizing.intervals)
            assert "never" in str(sizing)

    def test_it_may_do_more_than_it_was_seen_to_do(self) -> None:
        sizing = sized("8", rows_per_s=100, throughput_rows_per_s=100, throughput_is_lower_bound=True)
        assert sizing.recommended is not None
        assert (sizing.recommended.interval_s, sizing.recommended.catch_up_s) == (30, None)
        assert codes(sizing) == []
        assert "≤ 1 min" in str(sizing)
        assert "at least" in str(sizing)


@pytest.mark.parametrize(
    "load",
    [
        {"rows_per_s": 0},
        {"rows_per_s": -5},
        {"rows_per_s": math.inf},
        {"rows_per_s": math.nan},
        {"throughput_rows_per_s": 0},
        {"throughput_cores": 0},
        {"rows_per_s_per_core": -1},
        {"keys": -1},
        {"row_bytes": 0},
        {"state_bytes_per_key": 0},
        {"boundary_ms": 0},
        {"utilization": 0},
        {"utilization": 1.1},
        {"utilization": math.nan},
        {"cores_per_executor": 0},
        {"max_recovery_s": 0},
    ],
)
def test_bad_figures(load: dict[str, Any]) -> None:
    with pytest.raises(TailraceError, match=next(iter(load))) as error:
        Load(**load)
    assert error.value.code == "TAILRACE_BAD_SIZE"


def test_all_bad_figures_are_named_at_once() -> None:
    with pytest.raises(TailraceError) as error:
        Load(rows_per_s=0, keys=-1, utilization=2)
    assert all(name in error.value.problem for name in ("rows_per_s", "keys", "utilization"))
