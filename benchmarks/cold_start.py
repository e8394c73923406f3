"""Measure the time from the start of a process to its first output row, by part, with bare Spark and with Tailrace.

Prints a table of docs/benchmarks/epoch-boundaries.md.
The row is in the topic before the process starts. The packages and jars are in their caches, and their files in the
system's.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
import uuid
from typing import Any

from confluent_kafka import Consumer, TopicPartition

import tailrace
from benchmarks.common import PARTITIONS, preload, print_table
from tailrace._spark import maven
from tailrace.loadtest.machine import describe_machine

SIDES = ("bare Spark", "Tailrace")
STEPS = {
    "python": "Python starts and imports",
    "jvm": "the JVM starts",
    "session": "Spark starts",
    "query": "`start()` of the query, its check included",
    "row": "the first row is out",
}
ANSWERS_WITHIN_S = 120


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--child", nargs=4, metavar=("SIDE", "SERVERS", "SOURCE", "TARGET"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        run_query(*options.child)
        return
    taken: dict[str, list[dict[str, float]]] = {side: [] for side in SIDES}
    with tailrace.EmbeddedKafka() as kafka:
        for _ in range(options.rounds + 1):
            for side in SIDES:
                taken[side].append(cold_start(kafka, side))
    print(f"Medians of {options.rounds} starts, seconds. {describe_machine()}.\n")
    # The first start of each loads the files into the system's cache.
    medians = {
        side: {step: statistics.median(one[step] for one in starts[1:]) for step in STEPS}
        for side, starts in taken.items()
    }
    rows = [[what, *(f"{medians[side][step]:.2f}" for side in SIDES)] for step, what in STEPS.items()]
    print_table(["", *SIDES], [*rows, ["together", *(f"{sum(medians[side].values()):.2f}" for side in SIDES)]])


def cold_start(kafka: tailrace.EmbeddedKafka, side: str) -> dict[str, float]:
    source, target = (f"{uuid.uuid4().hex}-{end}" for end in ("in", "out"))
    kafka.create_topics([source, target], partitions=PARTITIONS)
    preload(kafka.bootstrap_servers, source, 1)
    begun = time.time()
    command = [sys.executable, "-m", __spec__.name, "--child", side, kafka.bootstrap_servers, source, target]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        came = first_row(kafka.bootstrap_servers, target)
        process.stdin.close()
        told: dict[str, float] = json.loads(process.stdout.readline())
    moments = [begun, *(told[step] for step in STEPS if step in told), came]
    return {step: moments[position + 1] - moments[position] for position, step in enumerate(STEPS)}


def first_row(servers: str, topic: str) -> float:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "first-row", "fetch.wait.max.ms": 5})
    consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    deadline = time.time() + ANSWERS_WITHIN_S
    while time.time() < deadline:
        message = consumer.poll(0.1)
        if message is not None and not message.error():
            consumer.close()
            return time.time()
    raise TimeoutError(f"no row in {topic} within {ANSWERS_WITHIN_S} s")


def run_query(side: str, servers: str, source: str, target: str) -> None:
    """The child: reports when it reaches each step, and runs until it is told to end."""
    moments: dict[str, Any] = {"python": time.time()}
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from benchmarks.common import read, running

    builder = SparkSession.builder.master("local[5]").config("spark.ui.enabled", "false")
    if side == "Tailrace":
        builder = tailrace.configure(builder)
    else:
        builder = builder.config("spark.jars", ",".join(map(str, maven.resolve(maven.KAFKA_CONNECTOR))))
    conf = tailrace._spark.session_builder.spark_conf(builder)
    SparkContext._ensure_initialized(conf=conf)
    moments["jvm"] = time.time()
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    moments["session"] = time.time()
    rows = read(spark, servers, source).select("key", "value")
    with running(rows, servers, target):
        moments["query"] = time.time()
        print(json.dumps(moments), flush=True)
        sys.stdin.read()
    spark.stop()


if __name__ == "__main__":
    main()
