"""Whether the epochs of a query will overlap, as far as that is known before the start."""

from __future__ import annotations

from tailrace._spark.slots import is_local
from tailrace.check.facts import Facts

OVERLAP_KEY = "spark.tailrace.epochs.overlap"
SHORTEST_EPOCH_MS = 2000

_SINKS = ("kafka", "tailrace-kafka", "console")
_PROCESSORS = ("transformWithState (JVM)", "transformWithState, transformWithStateInPandas (Python)")
_NOT_IF_WRITTEN_ONCE = (*_PROCESSORS, "dropDuplicatesWithinWatermark", "stream-stream join", "session_window(…)")


def may_overlap(facts: Facts) -> bool:
    """True unless the query itself or its session is against it. Slots are another matter."""
    operators = [operator for stage in facts.shape.stages for operator in stage.operators]
    names = {operator.name for operator in operators}
    sink = facts.writer.format if facts.writer is not None else None
    is_written_once = sink == "tailrace-kafka"
    return (
        sink in _SINKS
        and all(operator.overlaps for operator in operators)
        and is_local(facts.slots.master)
        and facts.settings.get(OVERLAP_KEY, "auto") != "off"
        and facts.epoch_ms >= SHORTEST_EPOCH_MS
        and not (facts.described.watermarks and names.intersection(_PROCESSORS))
        and not (is_written_once and names.intersection(_NOT_IF_WRITTEN_ONCE))
        and not (is_written_once and facts.sink_option("transactionInterval"))
    )


def overlaps(facts: Facts) -> bool:
    """True if there are slots for two epochs at once as well."""
    needed, free = facts.shape.slots, facts.slots.free
    return needed is not None and free is not None and 2 * needed <= free and may_overlap(facts)
