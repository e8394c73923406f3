"""Measure queries in their own JVM, so two JVMs with different options can be compared in one run.

`in_a_jvm` starts it; the child prints one line of JSON for each query.
"""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import tailrace
from benchmarks.common import PARTITIONS, drain_rate, read, running
from benchmarks.stateful_queries import in_sessions, joined, processed
from tailrace._process.paths import log_file
from tailrace._spark import maven
from tailrace._spark.logged_session import start_with_log
from tailrace.demo.run import SHORTEST_EPOCH_KEY
from tailrace.kafka import create_topics
from tailrace.loadtest import LoadTest, epoch_ends
from tailrace.loadtest.epochs import wait_for_epochs


@dataclass(frozen=True)
class Work:
    """The work of a JVM."""

    servers: str
    queries: tuple[str, ...]
    tailrace: bool = True
    settings: dict[str, str] = field(default_factory=dict)
    epoch_s: int = 10
    seconds: int = 125
    rate: int = 200
    warm_up_epochs: int = 12
    preloaded: str | None = None
    preloaded_rows: int = 0
    slots: int = 2 * PARTITIONS + 1


def stateless(rows: DataFrame) -> DataFrame:
    return rows.where("value IS NOT NULL").select("key", "value")


def aggregated(rows: DataFrame) -> DataFrame:
    record = F.from_json(F.col("value").cast("string"), "number LONG, intended_ns LONG")
    newest = rows.select("key", record.alias("record")).groupBy("key")
    latest = newest.agg(F.count("*").alias("rows"), F.max("record").alias("newest"))
    return latest.select("key", F.to_json("newest").alias("value"))


def with_python(rows: DataFrame) -> DataFrame:
    same = F.udf(lambda value: value, "binary")
    return rows.select("key", same("value").alias("value"))


def with_python_state(rows: DataFrame) -> DataFrame:
    return processed(rows).select("key", "value")


QUERIES: dict[str, Callable[..., DataFrame]] = {
    "stateless": stateless,
    "keyed aggregation": aggregated,
    "python udf": with_python,
    "python state": with_python_state,
    # A record matches itself: the topic is read twice.
    "join": joined,
    "session": in_sessions,
}
STREAMS = {"join": 2}


def in_a_jvm(work: Any, module: str = __spec__.name) -> Iterator[dict[str, Any]]:
    """The results of the JVM's queries, in order. Another module may run its own kind of work."""
    command = [sys.executable, "-m", module]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as jvm:
        assert jvm.stdin is not None
        assert jvm.stdout is not None
        json.dump(asdict(work), jvm.stdin)
        jvm.stdin.close()
        for line in jvm.stdout:
            yield json.loads(line)
    if jvm.returncode:
        raise subprocess.CalledProcessError(jvm.returncode, command)


def session(work: Work) -> SparkSession:
    builder = SparkSession.builder.master(f"local[{work.slots}]")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": str(PARTITIONS),
        SHORTEST_EPOCH_KEY: "1000",
        # The benchmark warms up the JVM itself, the same way with and without Tailrace.
        "spark.tailrace.warmup.epochs": "0",
    }
    for key, value in (settings | work.settings).items():
        builder = builder.config(key, value)
    if work.tailrace:
        builder = tailrace.configure(builder)
    else:
        builder = builder.config("spark.jars", ",".join(map(str, maven.resolve(maven.KAFKA_CONNECTOR))))
    return start_with_log(builder, log_file("bench-spark"))


class Measured:
    def __init__(self, work: Work, spark: SparkSession) -> None:
        self.work = work
        self.spark = spark

    def __call__(self, name: str) -> dict[str, Any]:
        self._warm_up(name)
        if self.work.preloaded is not None:
            return {"query": name, "rows_per_s": self._throughput(name, self.work.preloaded)}
        with ExitStack() as stack:
            query, load = self._run(name, self.work.epoch_s, stack)
            load.wait_for_output(timeout_s=90, records=2 * self.work.rate)
            report = load.measure(seconds=self.work.seconds).with_epoch_ends(epoch_ends(query))
            pause = tailrace.latency(query).to_dict()["pause"] if self.work.tailrace else None
            return {"query": name, "pause": pause} | report.to_dict()

    def _warm_up(self, name: str) -> None:
        """Warm up: bare Spark's first boundaries take seconds, and the comparison is between warm JVMs."""
        if not self.work.warm_up_epochs:
            return
        with ExitStack() as stack:
            query, load = self._run(name, 1, stack)
            load.wait_for_output(timeout_s=90)
            wait_for_epochs(query, self.work.warm_up_epochs)

    def _run(self, name: str, epoch_s: int, stack: ExitStack) -> tuple[Any, LoadTest]:
        source, target = self._topics()
        rows = self._query(name, source)
        query = stack.enter_context(running(rows, self.work.servers, target, epoch=f"{epoch_s} seconds"))
        load = LoadTest(
            bootstrap_servers=self.work.servers, input_topic=source, output_topic=target, rate=self.work.rate
        )
        return query, stack.enter_context(load)

    def _throughput(self, name: str, preloaded: str) -> float:
        _, target = self._topics()
        with running(self._query(name, preloaded), self.work.servers, target):
            return drain_rate(self.work.servers, target, self.work.preloaded_rows)

    def _query(self, name: str, source: str) -> DataFrame:
        return QUERIES[name](*(read(self.spark, self.work.servers, source) for _ in range(STREAMS.get(name, 1))))

    def _topics(self) -> tuple[str, str]:
        name = uuid.uuid4().hex
        pair = f"{name}-in", f"{name}-out"
        create_topics(self.work.servers, pair, partitions=PARTITIONS)
        return pair


def main() -> None:
    told = json.load(sys.stdin)
    work = Work(**{**told, "queries": tuple(told["queries"])})
    spark = session(work)
    try:
        measured = Measured(work, spark)
        for name in work.queries:
            print(json.dumps(measured(name)), flush=True)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
