"""Measure the Redis sink: latency to the acknowledged write, and throughput.

Latency: `kafka` and `tailrace-redis` (hashes) take turns in one session, at each rate. It is Tailrace's own end-to-end
figure, which ends when the broker or the server has acknowledged the row.
Throughput: rows that wait in a topic are written to hashes, and in turn one plain client for each partition writes the
same hashes, in pipelines of 1000 commands. Server, broker, clients and Spark share the machine. The server logs its
writes once a second, as Redis does by default (`appendonly yes`, `appendfsync everysec`).
"""

from __future__ import annotations

import argparse
import multiprocessing
import socket
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psutil
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

import tailrace
from benchmarks.common import PARTITIONS, Bench, preload, print_table, running, session
from benchmarks.stores import arguments, parsed, print_latency, rows_per_second
from tailrace._redis.client import encoded
from tailrace._spark import maven
from tailrace.loadtest.machine import describe_machine

SINK = "tailrace-redis"
BATCH_ROWS = 1000


def main() -> None:
    options = arguments(__doc__)
    # Without short first epochs: the journal, by which batches are counted, is that of the open epoch.
    settings = {"spark.tailrace.warmup.epochs": "0"}
    settings["spark.jars"] = ",".join(map(str, maven.resolve(maven.REDIS_CLIENT)))
    server = tailrace.EmbeddedRedis(settings={"appendfsync": "everysec"})
    with tailrace.EmbeddedKafka() as kafka, server as redis, session(**settings) as spark:
        print(f"{describe_machine()}\n")
        bench = Bench(kafka, spark)
        if options.only != "throughput":
            for rate in options.rates:
                print_latency(bench, SINK, lambda rows: writing(rows, redis), rate, options)
        if options.only != "latency":
            print_throughput(bench, redis, options)


@contextmanager
def writing(rows: DataFrame, redis: tailrace.EmbeddedRedis) -> Iterator[StreamingQuery]:
    redis.execute("FLUSHALL")
    options = {"url": redis.url, "passwordFile": redis.password_file, "structure": "hash", "key": "payment:{id}"}
    with running(rows, "", "", sink=SINK, **options) as query:
        yield query


@dataclass(frozen=True)
class Throughput:
    rows_per_s: float
    server_us: float
    """CPU time of the server for each row, which does not depend on what else runs on the machine."""
    batch_rows: float


def print_throughput(bench: Bench, redis: tailrace.EmbeddedRedis, options: argparse.Namespace) -> None:
    """The sink and plain clients take turns."""
    source, rows = bench.topic(), options.rows
    preload(bench.servers, source, rows)
    sink, plain = [], []
    for _ in range(options.rounds):
        sink.append(of_sink(bench, redis, source, rows))
        redis.execute("FLUSHALL")
        plain.append(of_plain_clients(redis, rows))
    print(f"{rows:,} rows, to hashes, {options.rounds} rounds in turn, medians:\n")
    print_table(
        ["writer", "rows/s", "rows in a batch", "CPU of the server, µs/row"],
        (
            [
                name,
                f"{median('rows_per_s', each):,.0f}",
                f"{median('batch_rows', each):.0f}",
                f"{median('server_us', each):.1f}",
            ]
            for name, each in ((f"`{SINK}`", sink), (f"{PARTITIONS} plain clients", plain))
        ),
    )
    ratios = [one.rows_per_s / other.rows_per_s for one, other in zip(sink, plain, strict=True)]
    print(f"ratio of each round: {', '.join(f'{ratio:.2f}' for ratio in ratios)}\n")


def median(figure: str, rounds: list[Throughput]) -> float:
    return float(statistics.median(getattr(each, figure) for each in rounds))


def of_sink(bench: Bench, redis: tailrace.EmbeddedRedis, source: str, rows: int) -> Throughput:
    with writing(parsed(bench, source), redis) as query:
        begun = cpu_s(redis)
        rate = rows_per_second(query, lambda: redis.execute("DBSIZE"), rows)
        server_us = 1e6 * (cpu_s(redis) - begun) / rows
        state = f"tailrace:{{{query.id}}}"
        journals = [f"{state}:journal:{epoch}" for epoch in redis.execute("SMEMBERS", f"{state}:epochs")]
        batches = sum(redis.execute("LLEN", journal) for journal in journals)
    return Throughput(rate, server_us, rows / batches)


def of_plain_clients(redis: tailrace.EmbeddedRedis, rows: int) -> Throughput:
    begun = cpu_s(redis)
    rate = plain_rate(redis, rows)
    return Throughput(rate, 1e6 * (cpu_s(redis) - begun) / rows, BATCH_ROWS)


def cpu_s(redis: tailrace.EmbeddedRedis) -> float:
    times = psutil.Process(redis.pid).cpu_times()
    return float(times.user + times.system)


def plain_rate(redis: tailrace.EmbeddedRedis, rows: int) -> float:
    parts = [range(part, rows, PARTITIONS) for part in range(PARTITIONS)]
    with multiprocessing.get_context("spawn").Pool(PARTITIONS) as clients:
        seconds = clients.starmap(plain_client, [(redis.port, redis.user, redis.password, part) for part in parts])
    return rows / max(seconds)


def plain_client(port: int, user: str, password: str, ids: range) -> float:
    """Over a bare socket: there is no faster client in Python."""
    with socket.create_connection(("127.0.0.1", port)) as connection, connection.makefile("rb") as answers:
        connection.sendall(encoded(("AUTH", user, password)))
        assert answers.readline().startswith(b"+OK")
        begun = time.perf_counter()
        for start in range(0, len(ids), BATCH_ROWS):
            batch = ids[start : start + BATCH_ROWS]
            commands = (("HSET", f"payment:{number}", "amount", number * 3, "note", "paid") for number in batch)
            connection.sendall(b"".join(map(encoded, commands)))
            for _ in batch:
                assert answers.readline().startswith(b":")
        return time.perf_counter() - begun


if __name__ == "__main__":
    main()
