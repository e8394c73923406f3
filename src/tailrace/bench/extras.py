"""What is measured on request, after the rounds: the highest rate, and the recovery from a kill."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from tailrace.bench.measure import Bed, measure
from tailrace.bench.options import BenchOptions
from tailrace.bench.ramp import climb
from tailrace.bench.recovery import recover
from tailrace.bench.result import BenchResult, Missing, Sustained
from tailrace.bench.schedule import Cell, cells
from tailrace.bench.view import BenchView
from tailrace.errors import TailraceError

# A ramp has many steps, and its question is yes or no.
STEP_S, STEP_WARM_UP_S = 15.0, 10.0


def extra_cells(options: BenchOptions) -> list[tuple[str, Cell]]:
    """("recovery" or "ramp", cell): for each workload and system, at the first rate."""
    able = [cell for cell in cells(options) if cell.refusal is None and cell.rate == options.rates[0]]
    kinds = [*(["recovery"] if options.recovery else []), *(["ramp"] if options.ramp_limit_ms else [])]
    return [(kind, cell) for kind in kinds for cell in able]


def extras(
    options: BenchOptions, bed: Bed, unavailable: dict[str, TailraceError], view: BenchView
) -> Iterator[Callable[[BenchResult], BenchResult]]:
    """For each, a function that measures it and adds it to the result."""
    for kind, cell in extra_cells(options):
        if cell.system not in unavailable:
            yield lambda result, kind=kind, cell=cell: _measured(result, kind, cell, bed, view)  # type: ignore[misc]


def failed(cell: Cell, failure: TailraceError, number: int | None = None) -> Missing:
    return Missing(cell.workload, cell.system, cell.rate, failure.problem, failed=True, round=number, log=failure.fix)


def _measured(result: BenchResult, kind: str, cell: Cell, bed: Bed, view: BenchView) -> BenchResult:
    view.begin(cell, kind)
    try:
        if kind == "recovery":
            recovery = recover(cell, bed, view.watch)
            view.note(f"first new row after {recovery.first_row_s:.1f} s, {recovery.repeated} repeated")
            return replace(result, recoveries=(*result.recoveries, recovery))
        sustained = _climbed(cell, bed, view)
        view.note(f"up to {sustained.rate:,} records/s")
        return replace(result, sustained=(*result.sustained, sustained))
    except TailraceError as failure:
        view.failed(cell, failure)
        return replace(result, missing=(*result.missing, failed(cell, failure)))


def _climbed(cell: Cell, bed: Bed, view: BenchView) -> Sustained:
    limit_ms = bed.options.ramp_limit_ms
    assert limit_ms is not None
    short = replace(bed, options=replace(bed.options, seconds=STEP_S, warm_up_s=STEP_WARM_UP_S))
    return climb(
        cell.workload,
        cell.system,
        cell.rate,
        limit_ms,
        lambda rate: measure(replace(cell, rate=rate), 0, short, view.watch),
    )
