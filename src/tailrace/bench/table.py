"""The result on a terminal: a table for each workload and rate."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tailrace.bench.result import BenchResult, Run, Spread
from tailrace.bench.systems import SYSTEMS
from tailrace.bench.workloads import WORKLOADS

FIGURES: dict[str, Callable[[Run], float]] = {
    "p50": lambda run: run.latency.p50_ms,
    "p90": lambda run: run.latency.p90_ms,
    "p99": lambda run: run.latency.p99_ms,
    "p99.9": lambda run: run.latency.p999_ms,
    "max": lambda run: run.latency.max_ms,
    "p50 (broker)": lambda run: run.broker_latency.p50_ms,
    "p99 (broker)": lambda run: run.broker_latency.p99_ms,
    "CPU s/M": lambda run: run.cpu_s_per_million,
    "MiB": lambda run: run.memory_mb,
    "ready s": lambda run: run.ready_s,
}


def brief(value: float) -> str:
    return f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def with_spread(runs: list[Run], figure: Callable[[Run], float]) -> str:
    """The median, and the least and the most if there were several rounds."""
    spread = Spread.over(runs, figure)
    if len(runs) == 1:
        return brief(spread.median)
    return f"{brief(spread.median)} [{brief(spread.least)}–{brief(spread.most)}]"


def method(result: BenchResult) -> str:
    return (
        f"Open loop, {result.partitions} partitions, measured for {result.seconds:g} s after a warm-up of "
        f"{result.warm_up_s:g} s, checkpoint or commit every {result.checkpoint_s} s, rounds: {result.rounds}. Latency "
        "in ms from the intended send time to an independent consumer; (broker): from the producer's timestamp to the "
        "time at which the broker appended the answer. CPU s/M: processor seconds of the system for a million input "
        "records. Broker and load run on the same machine."
    )


# What fits into a terminal; the report has all.
BRIEF = ("p50", "p99", "p99.9", "max", "p99 (broker)", "CPU s/M", "MiB")


def show(result: BenchResult, console: Console) -> None:
    for workload in result.workloads:
        for rate in result.rates:
            console.print()
            console.print(_table(result, workload, rate))
            for missing in result.missing:
                if missing.workload == workload and missing.rate == rate:
                    failed = "[red]failed[/]: " if missing.failed else ""
                    console.print(f"[dim]{SYSTEMS[missing.system].title}:[/] {failed}{escape(missing.reason)}")
    for one in result.sustained:
        shown = f"{one.rate:,} records/s" if one.rate else "no rate"
        console.print(f"{one.workload} on {SYSTEMS[one.system].title}: {shown} with p99 below {one.limit_ms:g} ms")
    for each in result.recoveries:
        console.print(
            f"{each.workload} on {SYSTEMS[each.system].title}: {each.first_row_s:.1f} s from SIGKILL to the first new "
            f"row, caught up after {each.caught_up_s:.1f} s, {each.repeated} rows repeated, {each.lost} lost"
        )
    if any(run.disturbance.is_disturbed for run in result.runs):
        console.print("[yellow]*[/] [dim]the machine was disturbed[/]")
    console.print(f"[dim]{escape(method(result))}[/]")
    console.print(f"[dim]{escape(result.machine)}[/]")


def _table(result: BenchResult, workload: str, rate: int) -> Table:
    table = Table(title=f"{workload}: {WORKLOADS[workload].title}, {rate} records/s", title_justify="left")
    table.add_column("system", no_wrap=True)
    for name in (*BRIEF, "lost", "dup."):
        table.add_column(name, justify="right")
    for cell in result.cells(workload, rate):
        if runs := result.runs_of(cell):
            table.add_row(SYSTEMS[cell.system].title, *_figures(runs))
    return table


def _figures(runs: list[Run]) -> list[str]:
    disturbed = " *" if any(run.disturbance.is_disturbed for run in runs) else ""
    figures = [with_spread(runs, FIGURES[name]) for name in BRIEF]
    return [figures[0] + disturbed, *figures[1:], str(sum(r.lost for r in runs)), str(sum(r.duplicates for r in runs))]
