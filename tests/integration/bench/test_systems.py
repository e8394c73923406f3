"""Every system runs every workload that it can: each record is answered, and every state is right.

Peers are installed into the cache, if they are not there yet.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tailrace import EmbeddedKafka
from tailrace._process.console import console
from tailrace.bench.options import BenchOptions
from tailrace.bench.run import run_bench
from tailrace.bench.schedule import schedule
from tailrace.bench.systems import SYSTEMS
from tailrace.bench.view import BenchView
from tailrace.bench.workloads import WORKLOADS
from tests.helpers.waiting import stretched

pytestmark = pytest.mark.bench

PAIRS = [(system, workload) for system in SYSTEMS for workload in WORKLOADS if workload not in SYSTEMS[system].cannot]


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("system", "workload"), PAIRS)
def test_a_cell(kafka: EmbeddedKafka, tmp_path: Path, system: str, workload: str) -> None:
    options = BenchOptions(
        (workload,),
        (system,),
        rates=(100,),
        seconds=4,
        warm_up_s=2,
        checkpoint_s=5,
        ready_within_s=stretched(120),
        patience_s=stretched(20),
    )
    assert len(schedule(options)) == 1
    result = run_bench(
        options, BenchView(console), logs=tmp_path, command="test", bootstrap_servers=kafka.bootstrap_servers
    )
    assert [(one.reason, one.log) for one in result.failures] == []
    [run] = result.runs
    assert (run.lost, run.duplicates) == (0, 0)
    assert run.expected > 100
    assert (run.timer_rows > 0) == WORKLOADS[workload].has_timers


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("system", [name for name in SYSTEMS if name not in ("real-time", "micro-batch")])
def test_recovery(kafka: EmbeddedKafka, tmp_path: Path, system: str) -> None:
    options = BenchOptions(
        ("stateless",),
        (system,),
        rates=(100,),
        seconds=2,
        warm_up_s=1,
        checkpoint_s=5,
        ready_within_s=stretched(120),
        patience_s=stretched(20),
        recovery=True,
    )
    result = run_bench(
        options, BenchView(console), logs=tmp_path, command="test", bootstrap_servers=kafka.bootstrap_servers
    )
    assert [(one.reason, one.log) for one in result.failures] == []
    [recovery] = result.recoveries
    assert recovery.lost == 0
    assert 0 < recovery.first_row_s <= recovery.caught_up_s
