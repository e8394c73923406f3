"""Measure how the pause between epochs grows with the keys that changed in an epoch and with those that are kept.

Prints a table of docs/seam.md. A count by key is kept in RocksDB; in every epoch some of the keys get a row.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

from confluent_kafka import Producer
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import tailrace
from benchmarks.common import Bench, print_table, read, rows_in, running, session
from tailrace.harness.machine import describe_machine

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


def measure(bench: Bench, name: str, size: int, boundaries: int) -> list[list[str]]:
    source, target = bench.topic(), bench.topic()
    send(bench.servers, source, size)
    measured = []
    with running(
        counted(read(bench.spark, bench.servers, source)), bench.servers, target, epoch=f"{EPOCH_S} seconds"
    ) as query:
        sent = size
        while rows_in(bench.servers, target) < sent:
            time.sleep(0.2)
        for changed in (one for one in CHANGED if one <= size):
            pauses, finishes, commits = [], [], []
            last = newest(query)["epoch"]["number"]
            for _ in range(boundaries + 1):
                send(bench.servers, source, changed)
                sent += changed
                while rows_in(bench.servers, target) < sent:
                    time.sleep(0.2)
                while (figures := newest(query))["epoch"]["number"] == last or not figures["boundaries"][-1][
                    "parts_ms"
                ]:
                    time.sleep(0.2)
                last = figures["epoch"]["number"]
                pauses.append(figures["boundaries"][-1]["gap_ms"])
                finishes.append(figures["boundaries"][-1]["parts_ms"]["finish"])
                commits.append(figures["state"][0]["commit_ms"] / 2)
            memory = newest(query)["state"][0]["memory_bytes"] / 2**20
            # The first still has the load of what came before.
            medians = [statistics.median(figure[1:]) for figure in (pauses, finishes, commits)]
            measured.append([name, f"{size:,}", f"{changed:,}", *(f"{one:.0f}" for one in medians), f"{memory:.0f}"])
    return measured


def newest(query: Any) -> dict[str, Any]:
    return tailrace.latency(query).to_dict()


def send(servers: str, topic: str, keys: int) -> None:
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 20, "queue.buffering.max.messages": 2_000_000})
    for number in range(keys):
        producer.produce(topic, key=f"key-{number}".encode(), value=b"1")
        if number % 10_000 == 0:
            producer.poll(0)
    producer.flush()


if __name__ == "__main__":
    main()
