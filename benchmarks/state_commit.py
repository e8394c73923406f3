"""Measure how the pause between epochs grows with the keys changed in an epoch and with the keys in the state.

Prints a table of docs/benchmarks/epoch-boundaries.md.
A count by key is kept in RocksDB; in every epoch some of the keys get a row.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import tailrace
from benchmarks.common import (
    PARTITIONS,
    Bench,
    preload,
    print_table,
    raise_if_failed,
    read,
    rows_in,
    running,
    session,
    wait_for_rows,
)
from tailrace.loadtest.machine import describe_machine

EPOCH_S = 6
SIZES = (100_000, 1_000_000)
CHANGED = (100, 10_000, 100_000)
VARIANTS: dict[str, dict[str, str]] = {
    "changelog (Real-Time Mode's own)": {},
    "snapshots": {"spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "false"},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--boundaries", type=int, default=4, help="for each figure")
    parser.add_argument("--snapshots", action="store_true", help="measure also without a changelog")
    options = parser.parse_args()
    rows: list[list[str]] = []
    with tailrace.EmbeddedKafka() as kafka, session(**{"spark.driver.memory": "3g"}) as spark:
        bench = Bench(kafka, spark)
        for name, settings in VARIANTS.items():
            if settings and not options.snapshots:
                continue
            for key, value in settings.items():
                spark.conf.set(key, value)
            for size in SIZES if not settings else SIZES[:1]:
                rows += measure(bench, name, size, options.boundaries)
    print(f"Epochs of {EPOCH_S} s, 2 state partitions, medians of {options.boundaries}. {describe_machine()}.\n")
    head = ["state", "keys kept", "keys changed", "pause, ms", "of it finish, ms", "state commit, ms", "state, MiB"]
    print_table(head, rows)


def counted(rows: DataFrame) -> DataFrame:
    counts = rows.groupBy("key").count()
    return counts.select("key", F.col("count").cast("string").alias("value"))


@dataclass(frozen=True)
class Boundaries:
    """Medians over some epoch boundaries."""

    pause_ms: float
    finish_ms: float
    commit_ms: float
    """The figure of one state partition."""
    state_mib: float


def measure(bench: Bench, name: str, size: int, boundaries: int) -> list[list[str]]:
    source, target = bench.topic(), bench.topic()
    preload(bench.servers, source, size, encode_a_key_each)
    measured = []
    with running(
        counted(read(bench.spark, bench.servers, source)), bench.servers, target, epoch=f"{EPOCH_S} seconds"
    ) as query:
        wait_for_rows(query, bench.servers, target, size)
        for changed in (one for one in CHANGED if one <= size):

            def change(changed: int = changed) -> int:
                preload(bench.servers, source, changed, encode_a_key_each)
                return changed

            found = at_boundaries(bench.servers, query, target, change, boundaries)
            figures = (found.pause_ms, found.finish_ms, found.commit_ms, found.state_mib)
            measured.append([name, f"{size:,}", f"{changed:,}", *(f"{one:.0f}" for one in figures)])
    return measured


def at_boundaries(servers: str, query: Any, target: str, change: Callable[[], int], boundaries: int) -> Boundaries:
    """Measure epochs in each of which `change` sends rows. It returns their number, and each is answered by one row."""
    pauses, finishes, commits = [], [], []
    last = newest(query)["epoch"]["number"]
    written = rows_in(servers, target)
    for _ in range(boundaries + 1):
        written += change()
        wait_for_rows(query, servers, target, written)
        while (figures := newest(query))["epoch"]["number"] == last or not figures["boundaries"][-1]["parts_ms"]:
            raise_if_failed(query)
            time.sleep(0.2)
        last = figures["epoch"]["number"]
        pauses.append(figures["boundaries"][-1]["pause_ms"])
        finishes.append(figures["boundaries"][-1]["parts_ms"]["finish"])
        commits.append(figures["state"][0]["commit_ms"] / PARTITIONS)
    memory = newest(query)["state"][0]["memory_bytes"] / 2**20
    # The first one still carries the load from before.
    pause, finish, commit = (statistics.median(figure[1:]) for figure in (pauses, finishes, commits))
    return Boundaries(pause, finish, commit, memory)


def newest(query: Any) -> dict[str, Any]:
    return tailrace.latency(query).to_dict()


def encode_a_key_each(number: int, _intended_ns: int) -> tuple[bytes, bytes]:
    return f"key-{number}".encode(), b"1"


if __name__ == "__main__":
    main()
