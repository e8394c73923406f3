"""Measure the pause between two epochs from outside, with bare Spark and with Tailrace in one run.

Each side has a JVM of its own and does the same: a query is warmed up with short epochs, then records are sent at a
fixed rate for two minutes with epochs of ten seconds. The pause is the longest silence of the output around the end of
an epoch. Prints the tables of docs/benchmarks/epoch-boundaries.md, and whether the bars hold.
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
from typing import Any

import tailrace
from benchmarks.common import PARTITIONS, preload, print_table, spread
from benchmarks.one_jvm import Work, in_a_jvm
from tailrace.contract.snapshot import PAUSE_PARTS
from tailrace.loadtest.machine import describe_machine
from tailrace.loadtest.report import LABELS

BARE, OURS = "bare Spark", "Tailrace"
# The boundaries until a JVM has compiled their code: both sides are compared as they would be after hours.
WARM_UP_EPOCHS = 50
STATELESS, STATEFUL, PYTHON = "stateless", "keyed aggregation", "python udf"
Results = dict[tuple[str, str], dict[str, Any]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=int, default=125)
    parser.add_argument("--epoch", type=int, default=10, help="seconds")
    parser.add_argument("--rate", type=int, default=200)
    parser.add_argument("--rows", type=int, default=400_000, help="preloaded rows for the throughput")
    parser.add_argument("--only", choices=("pause", "throughput"))
    options = parser.parse_args()
    with tailrace.EmbeddedKafka() as kafka:
        if options.only != "throughput":
            print_pauses(kafka.bootstrap_servers, options)
        if options.only != "pause":
            print_throughput(throughput(kafka, options.rows), options.rows)


def print_pauses(servers: str, options: argparse.Namespace) -> None:
    ours = Work(
        servers,
        (STATELESS, STATEFUL, PYTHON),
        epoch_s=options.epoch,
        seconds=options.seconds,
        rate=options.rate,
        warm_up_epochs=WARM_UP_EPOCHS,
    )
    # Bare Spark refuses Python functions.
    bare = dataclasses.replace(ours, queries=(STATELESS, STATEFUL), tailrace=False)
    results = {(side, one["query"]): one for side, work in ((BARE, bare), (OURS, ours)) for one in in_a_jvm(work)}
    print(
        f"{options.rate} rows/s, epochs of {options.epoch} s, {options.seconds} s, after {WARM_UP_EPOCHS} short "
        f"epochs. {describe_machine()}.\n"
    )
    print_boundaries(results)
    print_bars(results)


def print_boundaries(results: Results) -> None:
    print_table(
        ["", "pause, ms: median [least–most]", "boundaries", *LABELS.values(), "lost", "duplicates"],
        (
            [
                f"{query}, {side}",
                spread(found["pauses_ms"]),
                str(len(found["pauses_ms"])),
                *(f"{found[name]:.1f}" for name in LABELS),
                str(found["lost"]),
                str(found["duplicates"]),
            ]
            for (side, query), found in results.items()
        ),
    )
    print("What Tailrace's pause is made of, as `tailrace.latency(query)` says it, medians in ms:\n")
    print_table(
        ["", "together", *PAUSE_PARTS],
        (
            [query, f"{pause['median_ms']:.0f}", *(f"{pause['parts_ms'][part]:.0f}" for part in PAUSE_PARTS)]
            for (side, query), found in results.items()
            if (pause := found["pause"])
        ),
    )


def print_bars(results: Results) -> None:
    def pause(side: str, query: str) -> float:
        return float(statistics.median(results[side, query]["pauses_ms"]))

    def tail(side: str, query: str) -> float:
        return float(results[side, query]["p999_ms"])

    bars = [
        ("pause, stateless: Tailrace / bare Spark", pause(OURS, STATELESS) / pause(BARE, STATELESS), 0.5),
        ("pause, keyed aggregation: Tailrace / bare Spark", pause(OURS, STATEFUL) / pause(BARE, STATEFUL), 0.4),
        ("pause: Python UDF / stateless, both Tailrace", pause(OURS, PYTHON) / pause(OURS, STATELESS), 1.3),
        ("p99.9, stateless: Tailrace / bare Spark", tail(OURS, STATELESS) / tail(BARE, STATELESS), 0.5),
        ("p99.9, keyed aggregation: Tailrace / bare Spark", tail(OURS, STATEFUL) / tail(BARE, STATEFUL), 0.5),
    ]
    print_table(
        ["ratio", "measured", "bar", ""],
        ([name, f"{ratio:.2f}", f"≤ {most}", "holds" if ratio <= most else "missed"] for name, ratio, most in bars),
    )


def throughput(kafka: tailrace.EmbeddedKafka, rows: int) -> dict[tuple[str, str], list[float]]:
    """Twice, in turns, so a slow moment of the machine does not affect only one side."""
    kafka.create_topics(["preloaded"], partitions=PARTITIONS)
    preload(kafka.bootstrap_servers, "preloaded", rows)
    rates: dict[tuple[str, str], list[float]] = {}
    for _ in range(2):
        for side in (BARE, OURS):
            work = Work(
                servers=kafka.bootstrap_servers,
                queries=(STATELESS, STATEFUL),
                tailrace=side == OURS,
                preloaded="preloaded",
                preloaded_rows=rows,
            )
            for one in in_a_jvm(work):
                rates.setdefault((side, one["query"]), []).append(one["rows_per_s"])
    return rates


def print_throughput(rates: dict[tuple[str, str], list[float]], rows: int) -> None:
    print(f"Throughput within an epoch, over {rows:,} preloaded rows, rows/s, two rounds:\n")
    print_table(
        ["", BARE, OURS, "ratio of the means"],
        (
            [
                query,
                *(" / ".join(f"{rate:,.0f}" for rate in rates[side, query]) for side in (BARE, OURS)),
                f"{statistics.mean(rates[OURS, query]) / statistics.mean(rates[BARE, query]):.2f}",
            ]
            for query in (STATELESS, STATEFUL)
        ),
    )


if __name__ == "__main__":
    main()
