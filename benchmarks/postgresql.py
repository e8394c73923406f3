"""Measure the PostgreSQL sink: latency to the acknowledged write, and throughput.

Latency: `kafka` and `tailrace-postgresql` (upserts) take turns in one session, at each rate. It is Tailrace's own
end-to-end figure, which ends when the broker has acknowledged the row, or the server has committed it. The machine's
fsync is measured in the same run.
Throughput: rows that wait in a topic are upserted, and after that one plain client for each partition upserts the same
rows, in statements of 1000 rows. Server, broker, clients and Spark share the machine.
"""

from __future__ import annotations

import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

import tailrace
from benchmarks.common import PARTITIONS, Bench, preload, print_table, running, session
from benchmarks.stores import arguments, parsed, print_latency, rows_per_second
from tailrace._spark import maven
from tailrace.loadtest.machine import describe_machine

SINK = "tailrace-postgresql"
TABLE = "id bigint PRIMARY KEY, amount bigint, note text"
BATCH_ROWS = 1000


def main() -> None:
    options = arguments(__doc__)
    # Without short first epochs: the journal, by which transactions are counted, is that of the open epoch.
    settings = {"spark.tailrace.warmup.epochs": "0"}
    settings["spark.jars"] = str(maven.resolve(maven.POSTGRESQL_DRIVER)[0])
    with tailrace.EmbeddedKafka() as kafka, tailrace.EmbeddedPostgres() as postgres, session(**settings) as spark:
        print(f"{describe_machine()}\n")
        bench = Bench(kafka, spark)
        if options.only != "throughput":
            print(f"one fsync: {fsync_ms():.1f} ms (median)\n")
            for rate in options.rates:
                print_latency(bench, SINK, lambda rows: upserting(rows, postgres, new_table(postgres)), rate, options)
        if options.only != "latency":
            print_throughput(bench, postgres, options.rows)


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


def new_table(postgres: tailrace.EmbeddedPostgres) -> str:
    table = f"t_{time.monotonic_ns()}"
    postgres.execute(f"CREATE TABLE {table} ({TABLE})")
    return table


@contextmanager
def upserting(rows: DataFrame, postgres: tailrace.EmbeddedPostgres, table: str) -> Iterator[StreamingQuery]:
    options = {"url": postgres.url, "user": postgres.user, "passwordFile": postgres.password_file}
    options |= {"dbtable": table, "keyColumns": "id"}
    with running(rows, "", "", sink=SINK, **options) as query:
        yield query


def print_throughput(bench: Bench, postgres: tailrace.EmbeddedPostgres, rows: int) -> None:
    source, table = bench.topic(), new_table(postgres)
    preload(bench.servers, source, rows)

    def written() -> int:
        [[count]] = postgres.execute(f"SELECT count(*) FROM {table}")  # noqa: S608
        return int(count or 0)

    with upserting(parsed(bench, source), postgres, table) as query:
        sink = rows_per_second(query, written, rows)
        # Other queries, stopped within an epoch, have left lines as well.
        of_query = f"SELECT count(*) FROM tailrace_journal WHERE query = '{query.id}'"  # noqa: S608
        [[transactions]] = postgres.execute(of_query)
    plain = plain_rate(postgres, rows)
    print(f"{rows:,} rows, upserted:\n")
    print_table(
        ["writer", "rows/s", "rows in a transaction"],
        [
            [f"`{SINK}`", f"{sink:,.0f}", f"{rows / int(transactions or 1):.0f}"],
            [f"{PARTITIONS} plain clients", f"{plain:,.0f}", str(BATCH_ROWS)],
        ],
    )
    print(f"ratio: {sink / plain:.2f}\n")


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
