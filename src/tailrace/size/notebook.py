"""A sizing in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailrace.check.formatting import size_in_words
from tailrace.contract import notebook
from tailrace.size.rounding import short_duration

if TYPE_CHECKING:
    from tailrace.size.interval import Interval
    from tailrace.size.sizing import Sizing


def html_of(size: Sizing) -> str:
    needs = [
        ("task slots", size.arithmetic),
        ("executors", f"{size.executors} with {size.load.cores_per_executor} slots each"),
        ("CPU cores", f"{'up to ' if size.busy_cores is None else ''}{size.cores}"),
        ("memory of an executor", size_in_words(size.executor_memory_bytes)),
        ("memory overhead of an executor", size_in_words(size.executor_overhead_bytes)),
    ]
    columns = ("checkpoint interval", "recovery", "caught up", "at a boundary", "clear", "choice")
    return notebook.card(
        "What the query needs",
        notebook.table(("what", "needed"), needs),
        notebook.paragraph(size.recommendation),
        notebook.table(columns, [_row(size, one) for one in size.intervals]),
        notebook.findings(size.findings),
    )


def _row(size: Sizing, one: Interval) -> tuple[str, ...]:
    at_most = "≤ " if size.throughput_is_lower_bound else ""
    recovery = "?" if one.recovery_s is None else at_most + short_duration(one.recovery_s)
    unknown = "?" if size.keeps_up else "never"
    caught_up = unknown if one.catch_up_s is None else at_most + short_duration(one.catch_up_s)
    mark = "recommended" if one is size.recommended else ""
    return (short_duration(one.interval_s), recovery, caught_up, f"{one.boundary_share:.2%}", one.clear or "–", mark)
