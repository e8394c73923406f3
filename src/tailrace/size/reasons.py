"""Why a query needs so many cores, and why it should commit so often."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailrace.size.rounding import short_duration, short_number

if TYPE_CHECKING:
    from tailrace.size.sizing import Sizing


def why_this_many_cores(size: Sizing) -> str:
    load, per_core = size.load, size.load.known_rows_per_s_per_core
    if size.busy_cores is not None:
        return (
            f"{short_number(load.rows_per_s)} rows/s at {short_number(per_core)} rows/s a core keep "
            f"{size.busy_cores:,.1f} busy; to leave headroom, the target is {load.utilization:.0%} busy."
        )
    missing = "the throughput of a core is unknown"
    if per_core is not None:
        missing = "the rate of arriving rows is unknown"
    elif load.throughput_rows_per_s is not None:
        missing = "the number of cores behind the measured throughput is unknown"
    return f"one for each slot, because {missing}: a task keeps about one core busy at most, and most tasks wait."


def why_this_interval(size: Sizing) -> str:
    bound, best = short_duration(size.load.max_recovery_s), size.recommended
    if not size.keeps_up:
        return "none helps: the query falls behind, whatever the interval."
    if best is None:
        return f"none keeps boundaries out of p99 and recovery within {bound}."
    reason = f"the shortest that keeps boundaries out of {best.clear}"
    if not size.recovery_is_certain:
        return f"{reason}; it is unknown whether recovery stays within {bound}."
    less = "; none keeps them out of p99.9 within that" if best.clear == "p99" else ""
    return f"{reason}, with recovery within {bound}{less}."
