"""What stands in the way of a query of this size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tailrace.contract.findings import Finding, note, warning
from tailrace.size.rounding import short_duration, short_number

if TYPE_CHECKING:
    from tailrace.size.sizing import Sizing


def find(size: Sizing) -> Iterator[Finding]:
    load, busy = size.load, size.utilisation or 0
    arriving, possible = short_number(load.rows_per_s), short_number(size.throughput_rows_per_s)
    rates = f"{arriving} rows/s arrive, and it can do {possible} rows/s"
    if not size.keeps_up:
        detail = f"{rates}: its backlog would grow without end."
        fix = "more partitions with cores for them, or a faster slowest stage."
        yield warning("TAILRACE_CANNOT_KEEP_UP", "The query never catches up", detail, fix)
    elif busy > load.utilisation and size.wanted_cores is None and not size.throughput_is_lower_bound:
        title = f"The query would be {busy:.0%} busy, where {load.utilisation:.0%} is the target"
        detail = f"{rates}: a burst, or the pause between epochs, would be made up slowly."
        fix = f"{busy / load.utilisation:.1f} times the cores with partitions for them, or a faster slowest stage."
        yield warning("TAILRACE_NO_HEADROOM", title, detail, fix)
    if size.wanted_cores is not None and size.wanted_cores > size.slots:
        title = f"{size.slots} tasks cannot use the {size.wanted_cores} cores that the load asks for"
        detail = f"a task keeps about one core busy, and the cores of these would be {busy:.0%} busy."
        fix = "more partitions of the topic, or of the shuffles (spark.sql.shuffle.partitions)."
        yield warning("TAILRACE_TOO_FEW_TASKS", title, detail, fix)
    if size.keeps_up and size.recommended is None:
        clear = [one.interval_s for one in size.intervals if one.is_clear("p99")]
        in_time = [one.interval_s for one in size.intervals if (one.recovery_s or 0) <= load.max_recovery_s]
        detail = (
            f"p99 is clear {f'from {short_duration(clear[0])} on' if clear else 'with none of them'}, "
            f"recovery is in time {f'up to {short_duration(in_time[-1])}' if in_time else 'with none of them'}."
        )
        fix = "a shorter pause between epochs, a higher throughput, or more time to recover: one of them must give."
        title = "No checkpoint interval keeps p99 clear and recovers in time"
        yield warning("TAILRACE_NO_INTERVAL", title, detail, fix)
    if size.shape.stateful and load.keys is None:
        detail = "the query keeps state for every key, and the number of keys is unknown."
        fix = "give the expected number of keys."
        yield note("TAILRACE_STATE_UNKNOWN", "The state is not counted", detail, fix)
