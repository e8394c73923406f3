"""What stands in the way of a query of this size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tailrace.monitor.findings import Finding
from tailrace.size.rounding import short_duration, short_number

if TYPE_CHECKING:
    from tailrace.size.sizing import Sizing


def find(size: Sizing) -> Iterator[Finding]:
    load, busy = size.load, size.utilisation or 0
    arriving, possible = short_number(load.rows_per_s), short_number(size.throughput_rows_per_s)
    rates = f"{arriving} rows/s arrive, and it can do {possible} rows/s"
    if not size.keeps_up:
        evidence = f"{rates}: its backlog would grow without end."
        remedy = "more partitions with cores for them, or a faster slowest stage."
        yield Finding("TAILRACE_CANNOT_KEEP_UP", "warning", "The query never catches up", evidence, remedy)
    elif busy > load.utilisation and size.wanted_cores is None and not size.throughput_is_lower_bound:
        title = f"The query would be {busy:.0%} busy, where {load.utilisation:.0%} is the target"
        evidence = f"{rates}: a burst, or the pause between epochs, would be made up slowly."
        remedy = f"{busy / load.utilisation:.1f} times the cores with partitions for them, or a faster slowest stage."
        yield Finding("TAILRACE_NO_HEADROOM", "warning", title, evidence, remedy)
    if size.wanted_cores is not None and size.wanted_cores > size.slots:
        title = f"{size.slots} tasks cannot use the {size.wanted_cores} cores that the load asks for"
        evidence = f"a task keeps about one core busy, and the cores of these would be {busy:.0%} busy."
        remedy = "more partitions of the topic, or of the shuffles (spark.sql.shuffle.partitions)."
        yield Finding("TAILRACE_TOO_FEW_TASKS", "warning", title, evidence, remedy)
    if size.keeps_up and size.recommended is None:
        clear = [one.interval_s for one in size.intervals if one.is_clear("p99")]
        in_time = [one.interval_s for one in size.intervals if (one.recovery_s or 0) <= load.max_recovery_s]
        evidence = (
            f"p99 is clear {f'from {short_duration(clear[0])} on' if clear else 'with none of them'}, "
            f"recovery is in time {f'up to {short_duration(in_time[-1])}' if in_time else 'with none of them'}."
        )
        remedy = "a shorter pause between epochs, a higher throughput, or more time to recover: one of them must give."
        title = "No checkpoint interval keeps p99 clear and recovers in time"
        yield Finding("TAILRACE_NO_INTERVAL", "warning", title, evidence, remedy)
    if size.shape.stateful and load.keys is None:
        evidence = "the query keeps state for every key, and the number of keys is unknown."
        remedy = "give the expected number of keys."
        yield Finding("TAILRACE_STATE_UNKNOWN", "info", "The state is not counted", evidence, remedy)
