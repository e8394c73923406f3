"""Measure the cost of the probes inside the engine, and whether their figures are right.

Prints the tables of docs/benchmarks/live-latency.md. Compared variants run in turns within one run.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import tailrace
from benchmarks.common import Bench, drain_rate, latency, preload, print_table, read, rows_in, running, session
from benchmarks.processes import cpu_s, jvm_pid
from tailrace.loadtest import LatencyReport, LoadTest
from tailrace.loadtest.machine import describe_machine

Query = Callable[[DataFrame], DataFrame]
PROBES = "spark.tailrace.latency.enabled"
WARM_UP_ROUNDS = 2
SCHEMA = "number LONG, intended_ns LONG"


def parsed(rows: DataFrame) -> DataFrame:
    return rows.select(F.from_json(F.col("value").cast("string"), SCHEMA).alias("row")).select("row.*")


def as_json(rows: DataFrame) -> DataFrame:
    return rows.select(F.to_json(F.struct("*")).alias("value"))


def passed_on(rows: DataFrame) -> DataFrame:
    """The cheapest query there is, so nothing else hides the cost of the probes."""
    return rows.select("key", "value").where("length(value) > 10")


def repartitioned(rows: DataFrame) -> DataFrame:
    return rows.select("key", "value").repartition(2, "key")


def counted(rows: DataFrame) -> DataFrame:
    counts = rows.groupBy("key").agg(F.count("*").alias("rows"), F.max("value").alias("value"))
    return counts.select("key", "value")


def stateless(rows: DataFrame) -> DataFrame:
    return as_json(parsed(rows))


def aggregated(rows: DataFrame) -> DataFrame:
    return as_json(parsed(rows).groupBy("number").agg(F.max("intended_ns").alias("intended_ns")))


def with_udf(rows: DataFrame) -> DataFrame:
    same = F.udf(lambda number: number, "long")
    return as_json(parsed(rows).select(same("number").alias("number"), "intended_ns"))


def throughput(bench: Bench, query: Query, source: str, rows: int, *, probes: bool) -> tuple[float, float]:
    """Rows per second, and the CPU time of Spark's JVM per row in µs."""
    target = bench.topic()
    bench.spark.conf.set(PROBES, str(probes).lower())
    with running(query(read(bench.spark, bench.servers, source)), bench.servers, target):
        while rows_in(bench.servers, target) < rows // 10:
            time.sleep(0.02)
        jvm = jvm_pid(bench.spark)
        begun, written = cpu_s(jvm), rows_in(bench.servers, target)
        rate = drain_rate(bench.servers, target, rows)
        return rate, (cpu_s(jvm) - begun) / (rows - written) * 1e6


def print_cost(bench: Bench, rows: int, rounds: int) -> None:
    print(f"## Throughput with and without probes\n\n{rows:,} preloaded rows, {rounds} rounds in turns\n")
    source = bench.topic()
    preload(bench.servers, source, rows)
    table = []
    for name, query in {"filter": passed_on, "repartition": repartitioned, "aggregation": counted}.items():
        measured: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
        # The first pairs warm the JVM up for this query.
        for round in range(-WARM_UP_ROUNDS, rounds):
            for probes in (round % 2 == 0, round % 2 == 1):
                found = throughput(bench, query, source, rows, probes=probes)
                if round >= 0:
                    measured[probes].append(found)
        rates, costs = ({probes: [one[index] for one in measured[probes]] for probes in measured} for index in (0, 1))
        table.append(
            [
                name,
                *(f"{statistics.median(rates[probes]):,.0f}" for probes in (True, False)),
                ratio(rates),
                *(f"{statistics.median(costs[probes]):.2f}" for probes in (True, False)),
                ratio(costs),
            ]
        )
    head = ["query", "rows/s with", "without", "ratio", "CPU µs/row with", "without", "ratio"]
    print_table(head, table)


def ratio(figures: dict[bool, list[float]]) -> str:
    """The ratio with probes to without, over pairs measured right after each other: median and range."""
    pairs = [on / off for on, off in zip(figures[True], figures[False], strict=True)]
    return f"{statistics.median(pairs):.3f} ({min(pairs):.2f} to {max(pairs):.2f})"


def print_latency_cost(bench: Bench, seconds: int, rounds: int) -> None:
    print(f"## Latency with and without probes\n\n200 rows/s, {rounds} × {seconds} s in turns, seen from outside, ms\n")
    reports: dict[bool, list[LatencyReport]] = {True: [], False: []}
    for _ in range(rounds):
        for probes in (True, False):
            bench.spark.conf.set(PROBES, str(probes).lower())
            source, target = bench.topic(), bench.topic()
            with running(stateless(read(bench.spark, bench.servers, source)), bench.servers, target):
                reports[probes].append(latency(bench.servers, source, target, rate=200, seconds=seconds))
    table = []
    for probes, name in ((True, "with"), (False, "without")):
        cells = [
            f"{statistics.median(report.percentiles()[key] for report in reports[probes]):.1f}"
            for key in ("p50_ms", "p90_ms", "p99_ms", "p999_ms")
        ]
        table.append([name, *cells])
    print_table(["probes", "p50", "p90", "p99", "p99.9"], table)


def print_truth(bench: Bench, seconds: int) -> None:
    print(f"## Inside and outside\n\n200 rows/s, {seconds} s across epochs of 10 s, ms\n")
    bench.spark.conf.set(PROBES, "true")
    table = []
    for name, query in {"stateless": stateless, "aggregation": aggregated, "`udf`": with_udf}.items():
        source, target = bench.topic(), bench.topic()
        with (
            running(
                query(read(bench.spark, bench.servers, source)), bench.servers, target, epoch="10 seconds"
            ) as started,
            LoadTest(bootstrap_servers=bench.servers, input_topic=source, output_topic=target, rate=200) as load,
        ):
            load.wait_for_output(timeout_s=60, records=200 * 15)
            with tailrace.measure(started) as measurement:
                outside = load.measure(seconds=seconds).percentiles()
            inside = measurement.latency.to_dict()["windows"]["measured"]["end_to_end"]
        for key in ("p50_ms", "p99_ms"):
            apart = abs(inside[key] - outside[key])
            table.append(
                [
                    name,
                    key.removesuffix("_ms"),
                    f"{inside[key]:.1f}",
                    f"{outside[key]:.1f}",
                    f"{apart:.1f} ms, {apart / outside[key]:.0%}",
                    "yes" if apart <= 2 or apart <= 0.15 * outside[key] else "no",
                ]
            )
    print_table(["query", "", "inside", "outside", "apart", "within 2 ms or 15 %"], table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=["cost", "latency", "truth"], help="one of the parts")
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=int, default=30)
    arguments = parser.parse_args()
    print(f"{describe_machine()}\n")
    with tailrace.EmbeddedKafka() as kafka, session() as spark:
        bench = Bench(kafka, spark)
        if arguments.only in (None, "cost"):
            print_cost(bench, arguments.rows, arguments.rounds)
        if arguments.only in (None, "latency"):
            print_latency_cost(bench, arguments.seconds, arguments.rounds)
        if arguments.only in (None, "truth"):
            print_truth(bench, arguments.seconds)


if __name__ == "__main__":
    main()
