"""Measure the PostgreSQL sink: latency to the acknowledged write, and throughput.

Latency: `kafka` and `tailrace-postgresql` (upserts) take turns in one session, at each rate. It is Tailrace's own
end-to-end figure, which ends when the broker has acknowledged the row, or the server has committed it. The machine's
fsync is measured in the same run.
Throughput: rows that wait in a topic are upserted, and after that one plain client for each partition upserts the same
rows, in statements of 1000 rows. Server, broker, clients and Spark share the machine.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from confluent_kafka import Producer
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

import tailrace
from benchmarks.common import PARTITIONS, Bench, preload, print_table, raise_if_failed, read, running, session
from tailrace._spark import maven
from tailrace.loadtest.machine import describe_machine
from tailrace.results import Distribution

TABLE = "id bigint PRIMARY KEY, amount bigint, note text"
BATCH_ROWS = 1000
WARM_UP_S = 8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rates", type=int, nargs="+", default=[200, 1000])
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--only", choices=("latency", "throughput"))
    arguments = parser.parse_args()
    # Without short first epochs: the journal, by which transactions are counted, is that of the open epoch.
    settings = {"spark.tailrace.warmup.epochs": "0"}
    settings["spark.jars"] = str(maven.resolve(maven.POSTGRESQL_DRIVER)[0])
    with tailrace.EmbeddedKafka() as kafka, tailrace.EmbeddedPostgres() as postgres, session(**settings) as spark:
        print(f"{describe_machine()}\n")
        bench = Bench(kafka, spark)
        if arguments.only != "throughput":
            print(f"one fsync: {fsync_ms():.1f} ms (median)\n")
            for rate in arguments.rates:
                print_latency(bench, postgres, rate, arguments)
        if arguments.only != "latency":
            print_throughput(bench, postgres, arguments.rows)


def fsync_ms() -> float:
    """Where the server keeps its data."""
    times = []
    with tempfile.NamedTemporaryFile() as file:
        for _ in range(200):
            file.write(b"x" * 8192)
            begun = time.perf_counter()
            os.fdatasync(file.fileno())
            times.append((time.perf_counter() - begun) * 1000)
    return statistics.median(times)


def parsed(bench: Bench, topic: str) -> DataFrame:
    text = F.col("value").cast("string")
    rows = read(bench.spark, bench.servers, topic).select(F.from_json(text, "number LONG").alias("row"))
    return rows.select(
        F.col("row.number").alias("id"), (F.col("row.number") * 3).alias("amount"), F.lit("paid").alias("note")
    )


@contextmanager
def upserting(rows: DataFrame, postgres: tailrace.EmbeddedPostgres) -> Iterator[tuple[StreamingQuery, str]]:
    table = f"t_{time.monotonic_ns()}"
    postgres.execute(f"CREATE TABLE {table} ({TABLE})")
    options = {"url": postgres.url, "user": postgres.user, "passwordFile": postgres.password_file}
    options |= {"dbtable": table, "keyColumns": "id"}
    with running(rows, "", "", sink="tailrace-postgresql", **options) as query:
        yield query, table


@contextmanager
def load(bench: Bench, topic: str, rate: int) -> Iterator[None]:
    stop = threading.Event()

    def send() -> None:
        producer = Producer({"bootstrap.servers": bench.servers, "linger.ms": 0})
        begun, number = time.monotonic(), 0
        while not stop.is_set():
            due = int((time.monotonic() - begun) * rate)
            while number < due:
                producer.produce(topic, key=str(number).encode(), value=json.dumps({"number": number}).encode())
                number += 1
            producer.poll(0)
            time.sleep(0.5 / rate)
        producer.flush()

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def measured(query: StreamingQuery, seconds: int) -> tuple[Distribution, Distribution]:
    time.sleep(WARM_UP_S)
    with tailrace.measure(query) as measurement:
        time.sleep(seconds)
    whole, acknowledged = (measurement.latency.figure(name) for name in ("end_to_end", "acknowledgement"))
    assert whole is not None
    assert acknowledged is not None
    return whole, acknowledged


def print_latency(bench: Bench, postgres: tailrace.EmbeddedPostgres, rate: int, arguments: argparse.Namespace) -> None:
    found: dict[str, list[tuple[Distribution, Distribution]]] = {"kafka": [], "tailrace-postgresql": []}
    for _ in range(arguments.rounds):
        source, target = bench.topic(), bench.topic()
        as_json = parsed(bench, source).select(F.to_json(F.struct("*")).alias("value"))
        with running(as_json, bench.servers, target) as query, load(bench, source, rate):
            found["kafka"].append(measured(query, arguments.seconds))
        source = bench.topic()
        with upserting(parsed(bench, source), postgres) as (query, _), load(bench, source, rate):
            found["tailrace-postgresql"].append(measured(query, arguments.seconds))
    print(f"{rate} rows/s, {arguments.rounds} × {arguments.seconds} s, medians over the rounds:\n")
    print_table(
        ["sink", "end to end p50 ms", "p99 ms", "acknowledgement p50 ms", "p99 ms"],
        (
            [f"`{sink}`"]
            + [
                f"{statistics.median(getattr(pair[part], percentile) for pair in pairs):.1f}"
                for part in (0, 1)
                for percentile in ("p50_ms", "p99_ms")
            ]
            for sink, pairs in found.items()
        ),
    )


def print_throughput(bench: Bench, postgres: tailrace.EmbeddedPostgres, rows: int) -> None:
    source = bench.topic()
    preload(bench.servers, source, rows)
    with upserting(parsed(bench, source), postgres) as (query, table):
        sink, transactions = sink_rate(query, postgres, table, rows)
    plain = plain_rate(postgres, rows)
    print(f"{rows:,} rows, upserted:\n")
    print_table(
        ["writer", "rows/s", "rows in a transaction"],
        [
            ["`tailrace-postgresql`", f"{sink:,.0f}", f"{rows / transactions:.0f}"],
            [f"{PARTITIONS} plain clients", f"{plain:,.0f}", str(BATCH_ROWS)],
        ],
    )
    print(f"ratio: {sink / plain:.2f}\n")


def sink_rate(query: StreamingQuery, postgres: tailrace.EmbeddedPostgres, table: str, rows: int) -> tuple[float, int]:
    """After the first tenth, when the query is warm."""
    begun: tuple[float, int] | None = None
    while True:
        raise_if_failed(query)
        [[count]] = postgres.execute(f"SELECT count(*) FROM {table}")  # noqa: S608
        written, now = int(count or 0), time.monotonic()
        if begun is None and written >= rows // 10:
            begun = now, written
        if begun is not None and written >= rows:
            # Other queries, stopped within an epoch, have left lines as well.
            of_query = f"SELECT count(*) FROM tailrace_journal WHERE query = '{query.id}'"  # noqa: S608
            [[transactions]] = postgres.execute(of_query)
            return (written - begun[1]) / (now - begun[0]), int(transactions or 1)
        time.sleep(0.1)


def plain_rate(postgres: tailrace.EmbeddedPostgres, rows: int) -> float:
    postgres.execute(f"CREATE TABLE plain ({TABLE})")
    parts = [range(part, rows, PARTITIONS) for part in range(PARTITIONS)]
    arguments = [(postgres.url, postgres.user, str(postgres.password), part) for part in parts]
    with multiprocessing.get_context("spawn").Pool(PARTITIONS) as clients:
        seconds = clients.starmap(plain_client, arguments)
    return rows / max(seconds)


def plain_client(url: str, user: str, password: str, ids: range) -> float:
    values = ", ".join(["(%s, %s, %s)"] * BATCH_ROWS)
    update = "ON CONFLICT (id) DO UPDATE SET amount = EXCLUDED.amount, note = EXCLUDED.note"
    with psycopg.connect(url.removeprefix("jdbc:"), user=user, password=password, autocommit=True) as connection:
        begun = time.perf_counter()
        for start in range(0, len(ids), BATCH_ROWS):
            batch = ids[start : start + BATCH_ROWS]
            rows = ", ".join(["(%s, %s, %s)"] * len(batch)) if len(batch) < BATCH_ROWS else values
            cells = [cell for number in batch for cell in (number, number * 3, "paid")]
            connection.execute(f"INSERT INTO plain VALUES {rows} {update}", cells, prepare=True)  # noqa: S608
        return time.perf_counter() - begun


if __name__ == "__main__":
    main()
