"""The cost of a million keys: memory, the commit of the state, and the pause at an epoch boundary.

Each figure has its own JVM (`python -m benchmarks.stateful_keys` is that child): memory that was already allocated for
a smaller state would hide the needs of a larger one.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass

import tailrace
from benchmarks.common import PARTITIONS, preload, print_table, read, rows_in, running, session, wait_for_rows
from benchmarks.one_jvm import in_a_jvm
from benchmarks.processes import heap_mb, jvm_pid, python_workers, resident_mb
from benchmarks.progress import Progress
from benchmarks.state_commit import at_boundaries
from benchmarks.stateful_queries import NATIVE, ROWS
from benchmarks.stateful_records import encode_over
from tailrace.demo.run import SHORTEST_EPOCH_KEY
from tailrace.kafka import create_topics

KINDS = {kind.name: kind for kind in (NATIVE, ROWS)}
FIGURES = {
    "jvm_mb": "JVM, MB",
    "heap_mb": "of it heap after a collection, MB",
    "workers_mb": "Python workers, MB",
    "state_mib": "state by Spark's account, MiB",
    "commit_ms": "state commit, ms",
    "pause_ms": "pause at a boundary, ms",
}


@dataclass(frozen=True)
class Plan:
    keys: tuple[int, ...] = (10_000, 100_000, 1_000_000)
    rows: int = 1_000_000
    changed: int = 10_000
    boundaries: int = 3
    epoch_s: int = 5

    @classmethod
    def quick(cls) -> Plan:
        return cls(keys=(500, 2_000), rows=2_000, changed=500, boundaries=1, epoch_s=2)


@dataclass(frozen=True)
class Work:
    """The work of a JVM."""

    servers: str
    kind: str
    source: str
    target: str
    keys: int
    changed: int
    boundaries: int
    epoch_s: int


Measured = dict[tuple[str, int], dict[str, float]]


def print_tables(kafka: tailrace.EmbeddedKafka, plan: Plan) -> None:
    servers = kafka.bootstrap_servers
    progress = Progress("keys", len(plan.keys) * (1 + len(KINDS)))
    measured: Measured = {}
    for keys in plan.keys:
        source, *targets = (f"keys-{keys}-{number}" for number in range(1 + len(KINDS)))
        create_topics(servers, (source, *targets), partitions=PARTITIONS)
        progress.step(f"filling a topic with {plan.rows:,} rows over {keys:,} keys")
        preload(servers, source, plan.rows, encode_over(keys))
        for kind, target in zip(KINDS, targets, strict=True):
            progress.step(f"{keys:,} keys, {kind}")
            work = Work(servers, kind, source, target, keys, plan.changed, plan.boundaries, plan.epoch_s)
            [measured[kind, keys]] = in_a_jvm(work, __name__)
    print_figures(measured)
    print_growth(measured, min(plan.keys), max(plan.keys))


def print_figures(measured: Measured) -> None:
    print_table(
        ["query", "keys", *FIGURES.values()],
        (
            [kind, f"{keys:,}", *(f"{measured[kind, keys][figure]:,.0f}" for figure in FIGURES)]
            for kind in KINDS
            for keys in sorted({keys for _, keys in measured})
        ),
    )


def print_growth(measured: Measured, fewest: int, most: int) -> None:
    print(f"Growth from {fewest:,} to {most:,} keys:\n")
    table = []
    for figure, name in FIGURES.items():
        ends = [(measured[kind, fewest][figure], measured[kind, most][figure]) for kind in KINDS]
        table.append([name, *(_growth(*both) for both in ends)])
    print_table(["", *KINDS], table)


def _growth(before: float, after: float) -> str:
    return f"{round(after - before):+,} (× {after / before:.1f})" if before else f"{round(after):+,}"


def measure(work: Work) -> dict[str, float]:
    with session(**{SHORTEST_EPOCH_KEY: "1000"}) as spark:
        rows = KINDS[work.kind].query(read(spark, work.servers, work.source))
        # The previous run may have left the rows with which it changed its state.
        waiting = rows_in(work.servers, work.source)

        def change() -> int:
            preload(work.servers, work.source, work.changed, encode_over(work.keys))
            return work.changed

        with running(rows, work.servers, work.target, epoch=f"{work.epoch_s} seconds") as query:
            wait_for_rows(query, work.servers, work.target, waiting)
            found = at_boundaries(work.servers, query, work.target, change, work.boundaries)
            # The heap first: reading it collects garbage, and what is resident afterwards is needed.
            heap = heap_mb(spark)
            return {
                "jvm_mb": resident_mb(jvm_pid(spark)),
                "heap_mb": heap,
                "workers_mb": sum(map(resident_mb, python_workers())),
                "state_mib": found.state_mib,
                "commit_ms": found.commit_ms,
                "pause_ms": found.pause_ms,
            }


def method(plan: Plan) -> str:
    return (
        f"Method: {plan.rows:,} rows over so many keys in turn, so that each JVM has the same work behind it; then "
        f"{plan.changed:,} keys changed in each epoch of {plan.epoch_s} s. Medians of {plan.boundaries} "
        f"boundaries; commit by state partition, of which there are {PARTITIONS}. Each row of the table has a JVM "
        "of its own with a heap of at most 2 GB. Memory is what is resident at the end; what the workers share is "
        "counted for each of them."
    )


def main() -> None:
    print(json.dumps(measure(Work(**json.load(sys.stdin)))), flush=True)


if __name__ == "__main__":
    main()
