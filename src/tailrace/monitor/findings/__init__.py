"""What causes the tail: findings from a query's figures, each with its evidence and the fix.

All rules look at the last minute, so a finding about a single stall stays long enough to be read. They look at less
while the query has not run steadily for that long, because a start and a backlog are slow in their own ways.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tailrace.contract.findings import Finding, most_severe_first
from tailrace.contract.snapshot import ExecutorFigures, QueryFigures, QueryStatus
from tailrace.monitor.findings import backlog, delays, machine, skew
from tailrace.monitor.findings.evidence import Evidence

__all__ = ["find"]

Rule = Callable[[Evidence], Iterator[Finding]]

BACKLOG_RULES: tuple[Rule, ...] = (
    backlog.partition_not_read,
    backlog.bad_records,
    backlog.lagging,
    delays.slow_store,
)
RULES: tuple[Rule, ...] = (
    *BACKLOG_RULES,
    delays.slow_python,
    delays.slow_sink,
    delays.slow_broker,
    delays.late_records,
    skew.skewed_keys,
    skew.hot_partition,
    machine.garbage_collection,
    machine.too_few_cores,
    delays.epoch_boundaries,
)


def find(query: QueryFigures, executors: Sequence[ExecutorFigures], now: float) -> list[Finding]:
    """The findings on a query's figures, the most severe first."""
    evidence = Evidence(query, executors, now)
    if query.status in (QueryStatus.ENDED, QueryStatus.FAILED):
        return []
    # Without a row there is nothing to explain but why there is none.
    rules = RULES if evidence.window.end_to_end is not None else BACKLOG_RULES
    return most_severe_first(finding for rule in rules for finding in rule(evidence))
