"""The findings of a sizing: what keeps a query of this size from meeting its targets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tailrace.contract.findings import Finding, note, warning
from tailrace.size.rounding import short_duration, short_number

if TYPE_CHECKING:
    from tailrace.size.sizing import Sizing


def find(size: Sizing) -> Iterator[Finding]:
    load, busy = size.load, size.utilization or 0
    arriving, possible = short_number(load.rows_per_s), short_number(size.throughput_rows_per_s)
    rates = f"{arriving} rows/s arrive, and the query can process {possible} rows/s"
    if not size.keeps_up:
        detail = f"{rates}: its backlog would grow without limit."
        fix = "add partitions and cores for them, or speed up the slowest stage."
        yield warning("TAILRACE_CANNOT_KEEP_UP", "The query never catches up", detail, fix)
    elif busy > load.utilization and size.wanted_cores is None and not size.throughput_is_lower_bound:
        title = f"The query would be {busy:.0%} busy; the target is {load.utilization:.0%}"
        detail = f"{rates}: after a burst or an epoch boundary it would catch up slowly."
        fix = f"use {busy / load.utilization:.1f} times the cores and enough partitions, or a faster slowest stage."
        yield warning("TAILRACE_NO_HEADROOM", title, detail, fix)
    if size.wanted_cores is not None and size.wanted_cores > size.slots:
        title = f"{size.slots} tasks cannot use the {size.wanted_cores} cores that the load needs"
        detail = f"a task keeps about one core busy, and these tasks' cores would be {busy:.0%} busy."
        fix = "give the topic or the shuffles more partitions (spark.sql.shuffle.partitions)."
        yield warning("TAILRACE_TOO_FEW_TASKS", title, detail, fix)
    if size.keeps_up and size.recommended is None:
        clear = [one.interval_s for one in size.intervals if one.is_clear("p99")]
        in_time = [one.interval_s for one in size.intervals if (one.recovery_s or 0) <= load.max_recovery_s]
        detail = (
            f"p99 is clear {f'from {short_duration(clear[0])} on' if clear else 'with no interval'}, "
            f"recovery is in time {f'up to {short_duration(in_time[-1])}' if in_time else 'with no interval'}."
        )
        fix = "shorten the pause between epochs, raise the throughput, or allow more time to recover."
        title = "No checkpoint interval keeps p99 clear and recovers in time"
        yield warning("TAILRACE_NO_INTERVAL", title, detail, fix)
    if size.shape.stateful and load.keys is None:
        detail = "the query keeps state for every key, and the number of keys is unknown."
        fix = "give the expected number of keys."
        yield note("TAILRACE_STATE_UNKNOWN", "The state is not counted", detail, fix)
