"""Made-up results of benchmarks."""

from __future__ import annotations

from tailrace.bench.result import BenchResult, Latencies, Missing, Run, Second
from tailrace.bench.usage import Disturbance

QUIET = Disturbance(steal_pct=0.0, foreign_pct=0.5)


def make_run(
    workload: str,
    system: str,
    *,
    rate: int = 200,
    number: int = 0,
    p50: float = 5.0,
    cpu: float = 300.0,
    lost: int = 0,
    disturbance: Disturbance = QUIET,
) -> Run:
    latency = Latencies(p50, p50 * 1.5, p50 * 3, p50 * 5, p50 * 8)
    return Run(
        workload=workload,
        system=system,
        rate=rate,
        round=number,
        seconds=60,
        latency=latency,
        broker_latency=latency,
        expected=12_000,
        lost=lost,
        duplicates=0,
        timer_rows=0,
        cpu_s_per_million=cpu,
        memory_mb=700,
        ready_s=9,
        disturbance=disturbance,
        curve=((0.0, p50 / 2), (50.0, p50), (90.0, p50 * 1.5), (99.0, p50 * 3), (99.9, p50 * 5)),
        timeline=tuple(Second(at, p50, p50 * 3) for at in range(60)),
        checkpoints_s=(4.0, 14.0, 24.0, 34.0, 44.0, 54.0),
    )


def make_result(runs: list[Run], missing: list[Missing] | None = None) -> BenchResult:
    missing = missing or []
    cells = [*(run.cell for run in runs), *(one.cell for one in missing)]
    return BenchResult(
        tailrace="0.0",
        machine="2 cores, 24 GiB",
        command="tailrace bench",
        began="2026-11-18 00:00:00 UTC",
        took_s=100,
        seconds=60,
        warm_up_s=60,
        checkpoint_s=10,
        rounds=1 + max((run.round for run in runs), default=0),
        partitions=2,
        record_bytes=None,
        workloads=tuple(dict.fromkeys(cell.workload for cell in cells)),
        systems=tuple(dict.fromkeys(cell.system for cell in cells)),
        rates=tuple(dict.fromkeys(cell.rate for cell in cells)),
        versions={cell.system: "1.0" for cell in cells},
        runs=tuple(runs),
        missing=tuple(missing),
    )
