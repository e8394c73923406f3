"""Measure what good records notice of bad ones: a Python `udf` that raises on one record in a hundred.

Prints the table of docs/benchmarks/bad-records.md. The same query runs without bad records and with them, in turns. The
load is an open loop, and an independent consumer takes the latency of the good records from their intended send time.
Each window spans epoch boundaries.
"""

from __future__ import annotations

import argparse
import math
import statistics

from pyspark.sql import functions as F
from pyspark.sql.types import StringType

import tailrace
from benchmarks.common import Bench, print_table, read, rows_in, running, session
from tailrace.loadtest import LatencyReport, LoadTest
from tailrace.loadtest.machine import describe_machine
from tailrace.loadtest.records import encode_json

RATE = 200
EPOCH_S = 20
ONE_IN = 100
BAR = 2.0


def encode_with_bad_records(number: int, intended_ns: int) -> tuple[bytes, bytes]:
    """Every hundredth record is not JSON."""
    key, value = encode_json(number, intended_ns)
    return key, value if number % ONE_IN else b"bad " + value


def same_unless_bad(value: str) -> str:
    if value.startswith("bad"):
        raise ValueError("not JSON")
    return value


class BadRecordsBench(Bench):
    def measure(self, encode: str, seconds: int) -> tuple[LatencyReport, int, int]:
        """Latencies of the good records; the dead letters; the epochs that ended meanwhile."""
        source, target, letters = self.topic(), self.topic(), self.topic()
        rows = read(self.spark, self.servers, source).select("key", F.col("value").cast("string").alias("value"))
        scored = rows.select("key", F.udf(same_unless_bad, StringType())("value").alias("value"))
        options = {"onError": "dead-letter", "deadLetterTopic": letters, "errorsPerMinute": "1000000"}
        with (
            running(scored, self.servers, target, epoch=f"{EPOCH_S} seconds", **options) as query,
            LoadTest(
                bootstrap_servers=self.servers, input_topic=source, output_topic=target, rate=RATE, encode=encode
            ) as load,
        ):
            # Past the first boundary: the JVM is cold until then.
            load.wait_for_output(timeout_s=120, records=RATE * (EPOCH_S + 10))
            report = load.measure(seconds=seconds).with_epoch_ends(tailrace.loadtest.epoch_ends(query))
        return report, rows_in(self.servers, letters), len(report.epoch_boundaries_s)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    kinds = {
        "none": "tailrace.loadtest.records:encode_json",
        "1 in 100": "benchmarks.bad_records:encode_with_bad_records",
    }
    measured: dict[str, list[tuple[LatencyReport, int, int]]] = {name: [] for name in kinds}
    with tailrace.EmbeddedKafka() as kafka, session() as spark:
        bench = BadRecordsBench(kafka, spark)
        for _ in range(asked.rounds):
            for name, encode in kinds.items():
                measured[name].append(bench.measure(encode, asked.seconds))
    print(f"{RATE} records/s, {asked.rounds} × {asked.seconds} s each in turns, epochs of {EPOCH_S} s.")
    print(f"{describe_machine()}\n")
    table = []
    for name, rounds in measured.items():
        reports = [report for report, _, _ in rounds]
        columns = zip(*(report.percentiles().values() for report in reports), strict=True)
        bad = [0 if name == "none" else math.ceil(report.expected / ONE_IN) for report in reports]
        table.append(
            [
                name,
                *(" / ".join(f"{value:.1f}" for value in column) for column in columns),
                " / ".join(str(letters) for _, letters, _ in rounds),
                " / ".join(str(boundaries) for _, _, boundaries in rounds),
                " / ".join(str(max(0, report.lost - count)) for report, count in zip(reports, bad, strict=True)),
            ]
        )
    head = ["bad records", "p50 ms", "p90 ms", "p99 ms", "p99.9 ms", "max ms", "dead letters", "boundaries", "lost"]
    print_table(head, table)
    p99 = {name: statistics.median(report.p99_ms for report, _, _ in rounds) for name, rounds in measured.items()}
    ratio = p99["1 in 100"] / p99["none"]
    print(f"p99 of the good records, median of the rounds: {ratio:.2f} × that without bad ones (bar: {BAR:g} ×)")


if __name__ == "__main__":
    main()
