"""How fast Python's transformWithState processes a topic in both modes, compared with the native aggregation."""

from __future__ import annotations

import os
import statistics
import time
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import tailrace
from benchmarks.common import (
    PARTITIONS,
    Bench,
    preload,
    print_table,
    raise_if_failed,
    read,
    running,
    session,
    wait_for_rows,
)
from benchmarks.processes import cpu_s, jvm_pid, python_workers
from benchmarks.progress import Progress
from benchmarks.stateful_queries import NATIVE, ROWS, Kind
from benchmarks.stateful_records import encode_over

LEAST_ROWS_PER_S_AND_CORE = 10_000
SETTINGS = {
    # Micro-batch needs this for transformWithState; Real-Time Mode sets it anyway.
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    # The short first epochs would distort a measurement of seconds, and the JVM is already warm.
    "spark.tailrace.warmup.epochs": "0",
}


@dataclass(frozen=True)
class Plan:
    rows: int = 300_000
    keys: tuple[int, ...] = (100, 20_000)
    passes: int = 2

    @classmethod
    def quick(cls) -> Plan:
        return cls(rows=5_000, keys=(100,), passes=1)


@dataclass(frozen=True)
class Variant:
    kind: Kind
    real_time: bool

    @property
    def name(self) -> str:
        return f"{self.kind.name}, {'real time' if self.real_time else 'micro-batch'}"


REAL_TIME, MICRO_BATCH = Variant(ROWS, True), Variant(ROWS, False)
VARIANTS = (REAL_TIME, MICRO_BATCH, Variant(NATIVE, True), Variant(NATIVE, False))


@dataclass(frozen=True)
class Rate:
    rows_per_s: float
    rows_per_cpu_s: float


Measured = dict[tuple[int, Variant], list[Rate]]


def print_tables(kafka: tailrace.EmbeddedKafka, plan: Plan) -> None:
    with session(**SETTINGS) as spark:
        bench = Bench(kafka, spark)
        progress = Progress("throughput", len(plan.keys) * (1 + plan.passes * len(VARIANTS)) + len(VARIANTS))
        topics = {}
        for keys in plan.keys:
            progress.step(f"filling a topic with {plan.rows:,} rows over {keys:,} keys")
            topics[keys] = bench.topic()
            preload(bench.servers, topics[keys], plan.rows, encode_over(keys))
        for variant in VARIANTS:
            progress.step(f"warming up, {variant.name}")
            work_off(bench, variant, topics[plan.keys[0]], plan.rows)
        measured = measure(bench, plan, topics, progress)
    print_figures(measured)
    print_bars(measured)


def measure(bench: Bench, plan: Plan, topics: dict[int, str], progress: Progress) -> Measured:
    measured: Measured = defaultdict(list)
    for number in range(plan.passes):
        for keys in plan.keys:
            for variant in VARIANTS if number % 2 == 0 else reversed(VARIANTS):
                progress.step(f"pass {number + 1} of {plan.passes}, {keys:,} keys, {variant.name}")
                measured[keys, variant].append(work_off(bench, variant, topics[keys], plan.rows))
    return {(keys, variant): measured[keys, variant] for keys in plan.keys for variant in VARIANTS}


def work_off(bench: Bench, variant: Variant, source: str, rows: int) -> Rate:
    """From `start()` to the last row: micro-batch shows nothing before it has read and sorted everything."""
    target = bench.topic()
    query = variant.kind.query(read(bench.spark, bench.servers, source))
    used, begun = _cpu_s(bench), time.monotonic()
    with running(query, bench.servers, target, epoch="5 minutes" if variant.real_time else None) as started:
        if variant.kind is NATIVE and not variant.real_time:
            # Micro-batch writes a row per key, not per input row.
            _wait_for_batches(started, rows)
        else:
            wait_for_rows(started, bench.servers, target, rows)
        taken, used = time.monotonic() - begun, _cpu_s(bench) - used
    return Rate(rows / taken, rows / used)


def _cpu_s(bench: Bench) -> float:
    return sum(map(cpu_s, [jvm_pid(bench.spark), *python_workers()]))


def _wait_for_batches(query: Any, rows: int) -> None:
    while sum(progress["numInputRows"] for progress in query.recentProgress) < rows:
        raise_if_failed(query)
        time.sleep(0.05)


def print_figures(measured: Measured) -> None:
    table = []
    for (keys, variant), rates in measured.items():
        shown = " / ".join(f"{one.rows_per_s:,.0f}" for one in rates)
        rate = _median(rates)
        busy = statistics.median(one.rows_per_cpu_s for one in rates)
        table.append([f"{keys:,}", variant.name, shown, f"{rate / _cores():,.0f}", f"{busy:,.0f}"])
    print_table(
        ["keys", "query", "rows/s", "rows/s per core of the machine", "rows per second of processor time"], table
    )


def print_bars(measured: Measured) -> None:
    table = []
    for keys in dict.fromkeys(keys for keys, _ in measured):
        rate = _median(measured[keys, REAL_TIME])
        per_core, ratio = rate / _cores(), rate / _median(measured[keys, MICRO_BATCH])
        holds = [per_core >= LEAST_ROWS_PER_S_AND_CORE, ratio >= 1]
        what = [f"{keys:,} keys: rows/s per core", f"{keys:,} keys: real time / micro-batch"]
        shown = [f"{per_core:,.0f}", f"{ratio:.2f}"]
        bars = [f"≥ {LEAST_ROWS_PER_S_AND_CORE:,}", "≥ 1"]
        table += [
            list(row) for row in zip(what, shown, bars, ("holds" if one else "MISSED" for one in holds), strict=True)
        ]
    print_table([REAL_TIME.kind.name, "measured", "bar", ""], table)


def _median(rates: list[Rate]) -> float:
    return statistics.median(one.rows_per_s for one in rates)


def _cores() -> int:
    return os.cpu_count() or 1


def method(plan: Plan) -> str:
    return (
        f"Method: {plan.rows:,} rows wait in a topic of {PARTITIONS} partitions; from `start()` to the last row "
        f"out, warm, {plan.passes} passes in turns, every other one backwards, medians of them for all but the "
        "rows/s. One value state, the same processor in both modes. Micro-batch takes all rows in one batch, with "
        "RocksDB, in update mode; of the native aggregation it writes one row for each key. The broker shares the "
        "cores; processor time is that of the JVM and the Python workers."
    )
