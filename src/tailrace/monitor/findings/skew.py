"""Partitions and tasks that get more than their share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from tailrace.contract.findings import Finding
from tailrace.monitor.findings.evidence import NOTABLE_MS, WINDOW, Evidence, value, warning_if
from tailrace.monitor.wording import milliseconds

# A partition is hot when it has this many times its fair share, of enough rows that it is not by chance.
HOT = 2.0
ROWS_FOR_A_SHARE = 30

Key = TypeVar("Key")


def skewed_keys(evidence: Evidence) -> Iterator[Finding]:
    for stage in evidence.query.stages:
        if not stage.inputs:
            continue
        rates = {task.partition: task.windows[WINDOW].rows_per_s for task in stage.tasks}
        hot = _hottest(rates, evidence.seconds)
        if hot is None:
            continue
        partition, share, fair = hot
        task = next(task for task in stage.tasks if task.partition == partition)
        waits = value(task.windows[WINDOW].shuffle, "p99_ms")
        others = [value(one.windows[WINDOW].shuffle, "p99_ms") for one in stage.tasks if one is not task]
        yield Finding(
            "TAILRACE_SKEWED_KEYS",
            warning_if(waits >= NOTABLE_MS and waits >= 2 * max(others, default=0)),
            f"One task of stage {stage.stage} gets {share:.0%} of the rows",
            f"its partition {partition} works on {task.windows[WINDOW].rows_per_s:,.0f} rows/s, where "
            f"{fair:.0%} would be its share; rows reach it after {milliseconds(waits)} (p99), the others after "
            f"{milliseconds(max(others, default=0))}.",
            "a key that is much more frequent than others goes to one task: add another column to the key, aggregate "
            "in two steps, or take that key out.",
        )


def hot_partition(evidence: Evidence) -> Iterator[Finding]:
    partitions = evidence.query.partitions
    rates = {(one.topic, one.partition): one.windows[WINDOW].rows_in_per_s for one in partitions}
    hot = _hottest(rates, evidence.seconds)
    if hot is None:
        return
    (topic, partition), share, fair = hot
    tails = {(one.topic, one.partition): value(one.windows[WINDOW].end_to_end, "p99_ms") for one in partitions}
    others = [tail for place, tail in tails.items() if place != (topic, partition)]
    own = tails[topic, partition]
    yield Finding(
        "TAILRACE_HOT_PARTITION",
        warning_if(own >= NOTABLE_MS and own >= 2 * max(others, default=0)),
        f"Partition {topic}/{partition} gets {share:.0%} of the rows",
        f"{rates[topic, partition]:,.0f} rows/s, where {fair:.0%} would be its share; its p99 is {milliseconds(own)}, "
        f"that of the others up to {milliseconds(max(others, default=0))}.",
        "spread the records: a key with more values, or no key at all where order does not matter.",
    )


def _hottest(rates: dict[Key, float], seconds: float) -> tuple[Key, float, float] | None:
    """The key with much more than its share, its share, and what would be fair; if there is one and it matters."""
    total = sum(rates.values())
    if len(rates) < 2 or total * seconds < ROWS_FOR_A_SHARE * len(rates):
        return None
    hottest = max(rates, key=lambda key: rates[key])
    share, fair = rates[hottest] / total, 1 / len(rates)
    # Of two partitions none can have twice its share.
    return (hottest, share, fair) if share >= min(HOT * fair, 0.75) else None
