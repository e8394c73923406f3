"""The tables of a result as Markdown, for a documentation page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from tailrace.bench.result import BenchResult
from tailrace.bench.schedule import Cell
from tailrace.bench.systems import SYSTEMS
from tailrace.bench.table import FIGURES, method, with_spread
from tailrace.bench.workloads import WORKLOADS

COLUMNS = ("p50", "p99", "p99.9", "max", "p50 (broker)", "p99 (broker)", "CPU s/M", "MiB", "ready s")


def write(result: BenchResult, folder: Path) -> Path:
    path = folder / "report.md"
    path.write_text(text(result), encoding="utf-8")
    return path


def text(result: BenchResult) -> str:
    parts = [f"{method(result)}\n\nMachine: {result.machine}. Command: `{result.command}`. {_versions(result)}."]
    for workload in result.workloads:
        for rate in result.rates:
            parts.append(f"**{workload}**: {WORKLOADS[workload].title}, {rate:,} records/s")
            rows = [_row(result, cell) for cell in result.cells(workload, rate)]
            parts.append(_table(("system", *COLUMNS, "lost", "dup."), rows))
    if result.sustained:
        rows = [(SYSTEMS[o.system].title, o.workload, f"{o.rate:,}", f"{o.limit_ms:g} ms") for o in result.sustained]
        parts.append(_table(("system", "workload", "highest rate", "p99 below"), rows))
    if result.recoveries:
        recovered = [
            (SYSTEMS[o.system].title, o.workload, f"{o.first_row_s:.1f}", f"{o.caught_up_s:.1f}", str(o.repeated))
            for o in result.recoveries
        ]
        parts.append(_table(("system", "workload", "first new row, s", "caught up, s", "repeated"), recovered))
    if any(run.disturbance.is_disturbed for run in result.runs):
        parts.append("\\* The machine was disturbed.")
    return "\n\n".join(parts) + "\n"


def _versions(result: BenchResult) -> str:
    return ", ".join(f"{SYSTEMS[name].title} {version}" for name, version in result.versions.items())


def _row(result: BenchResult, cell: Cell) -> Sequence[str]:
    title, runs = SYSTEMS[cell.system].title, result.runs_of(cell)
    if not runs:
        missing = result.missing_of(cell)
        reason = missing.reason.replace("|", "\\|") if missing else "not run"
        return (title, f"failed: {reason}" if missing and missing.failed else reason)
    disturbed = " \\*" if any(run.disturbance.is_disturbed for run in runs) else ""
    figures = [with_spread(runs, FIGURES[name]) for name in COLUMNS]
    return (title + disturbed, *figures, str(sum(r.lost for r in runs)), str(sum(r.duplicates for r in runs)))


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(_lines(head, rows))


def _lines(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield f"| {' | '.join([*row, *[''] * (len(head) - len(row))])} |"
