"""Measure how long a check takes. Prints the table of docs/benchmarks/check.md."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import tailrace
from benchmarks.common import Bench, print_table, read, session
from tailrace.check.check import verdict_on
from tailrace.check.facts import facts_of
from tailrace.loadtest.machine import describe_machine

CHECKS = 15
APP = """
import sys
from pyspark.sql import SparkSession, functions as F
spark = SparkSession.builder.master("local[8]").config("spark.sql.shuffle.partitions", 2).getOrCreate()
rows = spark.readStream.format("kafka").option("kafka.bootstrap.servers", sys.argv[1]).option("subscribe", sys.argv[2])
counts = rows.load().groupBy("key").count().select(F.to_json(F.struct("*")).alias("value"))
out = counts.writeStream.format("kafka").option("kafka.bootstrap.servers", sys.argv[1]).option("topic", "out")
out.option("checkpointLocation", "unused").outputMode("update").trigger(realTime="5 minutes").start().awaitTermination()
"""


def stateless(rows: DataFrame) -> DataFrame:
    return rows.select("key", "value")


def aggregated(rows: DataFrame) -> DataFrame:
    latest = rows.groupBy("key").agg(F.count("*").alias("rows"), F.max("value").alias("value"))
    return latest.select("key", "value")


def with_python(rows: DataFrame) -> DataFrame:
    same = F.udf(lambda value: value, "binary")
    return aggregated(rows).select("key", same("value").alias("value"))


QUERIES: dict[str, Callable[[DataFrame], DataFrame]] = {
    "stateless": stateless,
    "aggregation": aggregated,
    "aggregation and udf": with_python,
}


def measure_checks(bench: Bench) -> None:
    rows = []
    for name, query in QUERIES.items():
        writer = _writer(bench, query)
        at_start, asked = _check_as_start_does(writer), _check_as_asked(writer)
        rows.append([name, f"{at_start:.0f}", f"{asked:.0f}"])
    print_table(["a check, ms (median, warm)", "inside start()", "tailrace.check"], rows)


def _writer(bench: Bench, query: Callable[[DataFrame], DataFrame]) -> Any:
    rows = query(read(bench.spark, bench.servers, bench.topic()))
    writer: Any = rows.writeStream.format("kafka").outputMode("update").option("topic", "unused")
    writer = writer.option("kafka.bootstrap.servers", bench.servers).option("checkpointLocation", "unused")
    return writer.trigger(realTime="5 minutes")


def _check_as_start_does(writer: Any) -> float:
    return _median_ms(lambda: verdict_on(facts_of(writer), writer._spark))


def _check_as_asked(writer: Any) -> float:
    return _median_ms(lambda: tailrace.check(writer))


def measure_script(bench: Bench) -> None:
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "app.py"
        script.write_text(APP)
        command = [sys.executable, "-m", "tailrace", "check", str(script), bench.servers, bench.topic()]
        taken = [_seconds(lambda: subprocess.run(command, check=True, capture_output=True)) for _ in range(3)]
    print(f"`tailrace check app.py`, from the shell: {statistics.median(taken):.1f} s (median of {len(taken)}).\n")


def _median_ms(work: Callable[[], object]) -> float:
    return 1000 * statistics.median(_seconds(work) for _ in range(CHECKS))


def _seconds(work: Callable[[], object]) -> float:
    begun = time.monotonic()
    work()
    return time.monotonic() - begun


def main() -> None:
    with tailrace.EmbeddedKafka() as kafka, session() as spark:
        bench = Bench(kafka, spark)
        measure_checks(bench)
        measure_script(bench)
    print(f"Machine: {describe_machine()}.")


if __name__ == "__main__":
    main()
