"""Measure the settings that shorten the pause between epochs, one by one.

Prints a table of docs/benchmarks/epoch-boundaries.md. Every variant has its own JVM; variants take turns.
"""

from __future__ import annotations

import argparse
import statistics
from collections import defaultdict

import tailrace
from benchmarks.common import PARTITIONS, preload, print_table, spread
from benchmarks.one_jvm import Work, in_a_jvm
from tailrace.loadtest.machine import describe_machine

JAVA = "spark.driver.extraJavaOptions"
HEAP = "spark.driver.memory"
FILES = "spark.sql.streaming.checkpointFileManagerClass"
SPARKS_FILES = "org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager"

G1 = {JAVA: "-XX:+UseG1GC"}
PARALLEL = {JAVA: "-XX:+UseParallelGC"}
VARIANTS: dict[str, dict[str, str]] = {
    "Tailrace's settings, and G1 as collector": G1,
    "Spark's own checkpoint files": {**G1, FILES: SPARKS_FILES},
    "checkpoint files left to the system (`spark.tailrace.checkpoint.fsync=false`)": {
        **G1,
        "spark.tailrace.checkpoint.fsync": "false",
    },
    "`-XX:+UseParallelGC`: what Tailrace sets": PARALLEL,
    "`-XX:+UseZGC`": {JAVA: "-XX:+UseZGC"},
    "a heap of 3 GB": {**G1, HEAP: "3g"},
    "`-XX:+UseParallelGC` and a heap of 3 GB": {**PARALLEL, HEAP: "3g"},
    "one thread for each server of the shuffle (`spark.rpc.io.threads=1`)": {**G1, "spark.rpc.io.threads": "1"},
    "Java's sockets instead of the system's (`spark.io.mode.default=NIO`)": {**G1, "spark.io.mode.default": "NIO"},
    "`-XX:TieredStopAtLevel=1`: only the quick compiler": {JAVA: "-XX:+UseG1GC -XX:TieredStopAtLevel=1"},
}
WARM_UP_EPOCHS = 25
QUERIES = ("stateless", "keyed aggregation")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--rows", type=int, default=400_000, help="preloaded rows for the throughput; 0 leaves it out")
    parser.add_argument("--only", help="variants whose name has this in it, besides the first")
    options = parser.parse_args()
    names = [name for name in VARIANTS if VARIANTS[name] is G1 or (options.only or "") in name]
    pauses: dict[tuple[str, str], list[float]] = defaultdict(list)
    rates: dict[tuple[str, str], list[float]] = defaultdict(list)
    with tailrace.EmbeddedKafka() as kafka:
        if options.rows:
            kafka.create_topics(["preloaded"], partitions=PARTITIONS)
            preload(kafka.bootstrap_servers, "preloaded", options.rows)
        for _ in range(options.rounds):
            for name in names:
                work = Work(
                    kafka.bootstrap_servers,
                    QUERIES,
                    settings=VARIANTS[name],
                    epoch_s=2,
                    seconds=options.seconds,
                    warm_up_epochs=WARM_UP_EPOCHS,
                )
                for one in in_a_jvm(work):
                    pauses[name, one["query"]] += one["pauses_ms"]
                if options.rows:
                    loaded = Work(
                        kafka.bootstrap_servers,
                        QUERIES,
                        settings=VARIANTS[name],
                        preloaded="preloaded",
                        preloaded_rows=options.rows,
                    )
                    for one in in_a_jvm(loaded):
                        rates[name, one["query"]].append(one["rows_per_s"])
    method = f"{options.rounds} × {options.seconds} s after {WARM_UP_EPOCHS} short epochs"
    print(f"200 rows/s, epochs of 2 s, {method}. {describe_machine()}.\n")
    print_table(
        ["", *(f"pause, {query}, ms" for query in QUERIES), *(f"{query}, rows/s" for query in QUERIES)],
        (
            [
                name,
                *(spread(pauses[name, query]) for query in QUERIES),
                *(f"{statistics.mean(rates[name, query]):,.0f}" if rates[name, query] else "" for query in QUERIES),
            ]
            for name in names
        ),
    )


if __name__ == "__main__":
    main()
