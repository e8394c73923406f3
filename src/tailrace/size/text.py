"""A sizing as text, for a terminal."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tailrace.check.formatting import duration_in_words, size_in_words
from tailrace.monitor.wording import milliseconds
from tailrace.size.memory import BASE_BYTES, GIB, MIB, STATE_OVERHEAD, TASK_BYTES
from tailrace.size.rounding import short_duration, short_number

if TYPE_CHECKING:
    from tailrace.size.sizing import Sizing


def text_of(size: Sizing) -> str:
    parts = [_slots_text(size), _cores_text(size), _memory_text(size), _intervals_text(size)]
    for one in size.findings:
        parts.append([f"{one.title}  [{one.code}]", *_prose(one.detail), *_prose(f"→ {one.fix}")])
    return "\n\n".join("\n".join(lines) for lines in parts)


def _slots_text(size: Sizing) -> list[str]:
    lines = [f"Task slots: {size.arithmetic}"]
    for stage in size.shape.stages:
        what = ", ".join([*stage.sources, *(["state"] if stage.stateful else [])])
        lines.append(f"  stage {stage.number:<4}{stage.tasks:>6}  {what}".rstrip())
    return [
        *lines,
        *_prose("All stages run at the same time, and a task holds its slot even while it waits for rows."),
        f"Executors: {size.executors} with {size.load.cores_per_executor} slots each (spark.executor.cores)",
    ]


def _cores_text(size: Sizing) -> list[str]:
    load, throughput = size.load, short_number(size.throughput_rows_per_s)
    sentences = [size.cores_rule]
    if size.throughput_rows_per_s is not None and size.throughput_is_lower_bound:
        sentences.append(f"It processed {throughput} rows/s without a backlog: it can process at least that many.")
    elif size.utilization is not None:
        sentences.append(
            f"{short_number(load.rows_per_s)} rows/s are {size.utilization:.0%} of the {throughput} rows/s that it can "
            f"do; {load.utilization:.0%} is the target."
        )
    sentences.append("Slots are not cores: an executor may have more slots than cores.")
    return [f"CPU cores: {'up to ' if size.busy_cores is None else ''}{size.cores}", *_prose(*sentences)]


def _memory_text(size: Sizing) -> list[str]:
    load, each = size.load, size.state_disk_bytes / size.executors
    sentences = [
        f"spark.executor.memory={size.executor_memory_bytes // GIB}g: {size_in_words(BASE_BYTES)} + "
        f"{load.cores_per_executor} tasks × {size_in_words(TASK_BYTES)}, rounded up (estimates)."
    ]
    if size.shape.stateful:
        sentences.append(
            f"spark.executor.memoryOverhead={size.executor_overhead_bytes // MIB}m: Spark's default + "
            f"{size_in_words(size.state_buffers_bytes)} for RocksDB's buffers + {size_in_words(each)} of state, "
            "so no row waits for a disk."
        )
    if load.keys is not None:
        assumed = "" if load.state_bytes_per_key or load.row_bytes else " (assumed)"
        sentences.append(
            f"State: {load.keys:,} keys × {size.state_bytes_per_key:,.0f} bytes{assumed} × {STATE_OVERHEAD:g} for "
            f"older values and indexes = {size_in_words(size.state_disk_bytes)} on the disks of all executors."
        )
    return ["Memory for each executor", *_prose(*sentences, "Python workers need memory of their own on top.")]


def _intervals_text(size: Sizing) -> list[str]:
    best = size.recommended
    source = "an estimate: measure it" if size.load.boundary_ms is None else f"measured{_parts(size)}"
    chosen = "none"
    if best is not None:
        chosen = f'{short_duration(best.interval_s)}, .trigger(realTime="{duration_in_words(1000 * best.interval_s)}")'
    pause = f"between epochs nothing is read for {milliseconds(size.boundary_ms)} ({source})."
    lines = [
        f"Checkpoint interval: {chosen}",
        *_prose(size.recommendation, pause),
        "",
        f"  {'interval':>8}  {'recovery':>10}  {'':10}  {'caught up':>10}  {'at a boundary':>13}  {'':10}  clear",
    ]
    at_most = "≤ " if size.throughput_is_lower_bound else ""
    recovery_bars = _bars([one.recovery_s for one in size.intervals])
    boundary_bars = _bars([one.boundary_share for one in size.intervals])
    for one, recovery_bar, boundary_bar in zip(size.intervals, recovery_bars, boundary_bars, strict=True):
        recovery = "?" if one.recovery_s is None else at_most + short_duration(one.recovery_s)
        unknown = "?" if size.keeps_up else "never"
        caught_up = unknown if one.catch_up_s is None else at_most + short_duration(one.catch_up_s)
        mark = "◀ recommended" if one is best else ""
        mark += " (this query's)" if one.interval_s * 1000 == size.shape.epoch_ms else ""
        lines.append(
            f"  {short_duration(one.interval_s):>8}  {recovery:>10}  {recovery_bar}  {caught_up:>10}  "
            f"{one.boundary_share:>13.2%}  {boundary_bar}  {one.clear or '–':<5}  {mark}".rstrip()
        )
    legend = (
        "Recovery: the replay of the rows since the last commit; caught up: also of those that arrive meanwhile; the "
        "restart itself comes on top. At a boundary: records that arrive while nothing is read. Clear: the highest "
        "percentile that they do not reach. Bars are logarithmic."
    )
    return [*lines, "", *_prose(legend)]


def _prose(*sentences: str) -> list[str]:
    """Indented lines, one sentence per line."""
    # Keep the names of settings as they are.
    begun = [text[0].upper() + text[1:] if text.split()[0].isalpha() else text for text in sentences]
    return [line for text in begun for line in textwrap.wrap(f"  {text}", 100, subsequent_indent="  ")]


def _parts(size: Sizing) -> str:
    parts = size.load.boundary_parts_ms
    return ": " + ", ".join(f"{name} {milliseconds(taken)}" for name, taken in parts.items()) if parts else ""


def _bars(values: Sequence[float | None], width: int = 10) -> list[str]:
    """A logarithmic bar: one block for the smallest value, all blocks for the largest."""
    logs = [None if value is None else math.log(value) for value in values]
    known = [one for one in logs if one is not None]
    low, span = min(known, default=0.0), (max(known, default=0.0) - min(known, default=0.0)) or 1.0
    lengths = [0 if one is None else 1 + round((width - 1) * (one - low) / span) for one in logs]
    return [f"{'█' * length:<{width}}" for length in lengths]
