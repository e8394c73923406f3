"""Python workers are kept while in use, hold a bounded number of rows, and end when nobody needs them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tailrace import EmbeddedKafka
from tailrace.supervise.warm_workers import warm_workers
from tests.helpers.pipeline import Pipeline
from tests.helpers.processes import alive, command_line, descendants, run_python
from tests.helpers.topics import new_topic, produce
from tests.helpers.waiting import stretched, until

LONG_EPOCH = "10 minutes"


def feeders(spark: SparkSession) -> list[str]:
    jvm: Any = spark.sparkContext._jvm
    threads = jvm.java.lang.Thread.getAllStackTraces().keySet().toArray()
    return [thread.getName() for thread in threads if thread.getName().startswith("tailrace-python-feeder")]


@pytest.fixture
def overlap(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[None]:
    key = "spark.tailrace.epochs.overlap"
    spark.conf.set(key, request.param)
    yield
    spark.conf.unset(key)


@pytest.mark.parametrize(
    ("overlap", "most"),
    [pytest.param("off", 2, id="one for each partition"), pytest.param("auto", 4, id="and one of the next epoch")],
    indirect=["overlap"],
)
@pytest.mark.usefixtures("overlap")
def test_workers_serve_one_epoch_after_the_other(pipeline: Pipeline, tmp_path: Path, most: int) -> None:
    pids = tmp_path / "pids"

    def note(value: int) -> int:
        with pids.open("a") as lines:
            lines.write(f"{os.getpid()}\n")
        return value

    rows = pipeline.rows().select(F.udf(note, "long")("id").alias("id"))
    with pipeline.running(rows, epoch="5 seconds"), pipeline.collect() as out:
        for number in range(4):
            pipeline.send(range(100 * number, 100 * (number + 1)))
            until(lambda: len(out.rows()) == 100 * (number + 1), "the rows of this epoch")  # noqa: B023
            until(lambda: len(pipeline.log("commits")) > number, "its end")  # noqa: B023
    # One more epoch with workers of its own would make it two more.
    assert 2 <= len(set(pids.read_text().split())) <= most


def test_workers_import_the_compiled_pyspark(pipeline: Pipeline) -> None:
    def imported_from(_: int) -> str:
        import pyspark

        return pyspark.__file__

    rows = pipeline.rows().select(F.udf(imported_from, "string")("id").alias("file"))
    with pipeline.running(rows, epoch=LONG_EPOCH), pipeline.collect() as out:
        pipeline.send(range(1))
        assert until(out.rows, "a row") == [{"file": pyspark.__file__}]


def test_nothing_is_left_after_stop(pipeline: Pipeline, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"

    def stuck(value: int) -> int:
        pid_file.write_text(str(os.getpid()))
        time.sleep(3600)  # noqa: TID251 (a user's slow function)
        return value

    rows = pipeline.rows().select(F.udf(stuck, "long")("id").alias("id"))
    with pipeline.running(rows, epoch=LONG_EPOCH) as query:
        pipeline.send(range(100))
        until(pid_file.exists, "a call")
        assert feeders(pipeline.spark)
        begun = time.monotonic()
        query.stop()
        assert time.monotonic() - begun < stretched(30), "the function sleeps for an hour"
        until(lambda: not feeders(pipeline.spark), "no feeder")
        until(lambda: not alive(int(pid_file.read_text())), "no worker that nobody can end")


def test_a_slow_function_slows_the_source(pipeline: Pipeline, tmp_path: Path) -> None:
    """What is between the source and the function is bounded, however much there is to read."""
    entered = tmp_path / "entered"
    entered.touch()

    def count(value: int) -> int:
        with entered.open("ab") as marks:
            marks.write(b".")
        return value

    def slow(value: int) -> int:
        time.sleep(0.002)  # noqa: TID251 (a user's slow function)
        return value

    total = 40_000
    pipeline.send(range(total), keys=1)
    fast = F.udf(count, "long", useArrow=False)
    query = pipeline.rows().select(F.udf(slow, "long", useArrow=True)(fast("id")).alias("id"))
    with pipeline.running(query, epoch=LONG_EPOCH), pipeline.collect() as out:
        until(lambda: len(out.rows()) > 1500, "some rows")
        # A backlog of 4096 rows, two batches with the worker, and what the first function has in its own.
        ahead = entered.stat().st_size - len(out.rows())
        assert 0 < ahead < 12_000 < total


@pytest.mark.parametrize("kind", ["udf", "mapInPandas"])
def test_rows_larger_than_a_sockets_buffer(pipeline: Pipeline, kind: str) -> None:
    """A burst of them, and then silence: neither side may wait for the other to read."""
    rows = pipeline.rows().select("id", F.expr("repeat(key, 50000)").alias("text"))
    if kind == "udf":
        long = rows.select("id", F.udf(lambda text: text + text, "string")("text").alias("text"))
    else:
        long = rows.mapInPandas(lambda frames: frames, "id LONG, text STRING")
    with pipeline.running(long.select("id", F.length("text").alias("n")), epoch=LONG_EPOCH), pipeline.collect() as out:
        pipeline.send(range(300))
        until(lambda: len(out.rows()) == 300, "all of the burst")
        assert {row["n"] for row in out.rows()} == {200_000 if kind == "udf" else 100_000}


BUSY = """
import sys, time
from collections.abc import Iterator
from pathlib import Path
import tailrace
from pyspark.sql import Row, SparkSession, functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

servers, topic, target, folder = sys.argv[1:]
busy = Path(folder) / "busy"

def slow(value):
    busy.touch()
    time.sleep(0.3)
    return value

class Restless(StatefulProcessor):
    def init(self, handle):
        self.numbers = handle.getListState("numbers", "n INT")

    def handleInputRows(self, key, rows, timerValues):
        for row in rows:
            busy.touch()
            for n in range(1000):
                self.numbers.put([(n,)])
                list(self.numbers.get())
                self.numbers.clear()
            yield Row(value=row.value)

builder = SparkSession.builder.master("local[4]").config("spark.ui.enabled", "false")
builder = builder.config("spark.ui.showConsoleProgress", "false").config("spark.sql.shuffle.partitions", "2")
spark = tailrace.configure(builder).getOrCreate()
rows = spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers).option("subscribe", topic)
values = rows.option("startingOffsets", "earliest").load().select(F.col("value").cast("string").alias("value"))
queries = {
    "udf": values.select(F.udf(slow, "string")("value").alias("value")),
    "processor": values.groupBy("value").transformWithState(Restless(), "value STRING", "Update", "None"),
}
for name, query in queries.items():
    writer = query.writeStream.format("kafka").option("kafka.bootstrap.servers", servers).option("topic", target)
    writer = writer.outputMode("update").option("checkpointLocation", f"{folder}/{name}")
    for turn in range(2):
        busy.unlink(missing_ok=True)
        started = writer.trigger(realTime="60 seconds").start()
        deadline = time.monotonic() + 60
        while not busy.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        started.stop()
        print(name, busy.exists(), started.exception())
spark.stop()
"""


def test_stop_in_the_middle_of_a_call_prints_nothing_of_a_worker(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    topic, target = new_topic(kafka.bootstrap_servers, "in"), new_topic(kafka.bootstrap_servers, "out")
    produce(kafka.bootstrap_servers, topic, ({"id": number} for number in range(5000)), key="id")
    arguments = (kafka.bootstrap_servers, topic, target, str(tmp_path))
    result = run_python(BUSY, *arguments, timeout_s=240)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == ["udf True None"] * 2 + ["processor True None"] * 2, result.stderr
    for noise in ("Traceback", "BrokenPipe", "Broken pipe", "reset", "EOFError", "STATE_STORE_INVALID_STAMP"):
        assert noise not in result.stderr


def test_a_dead_worker_in_the_pool_is_not_given_to_the_next_query(pipeline: Pipeline, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"

    def note(value: int) -> int:
        pid_file.write_text(str(os.getpid()))
        return value

    rows = pipeline.rows().select(F.udf(note, "long")("id").alias("id"))
    for turn in range(2):
        pipeline.use_fresh_output(tmp_path / f"checkpoint-{turn}")
        pipeline.send(range(10))
        with pipeline.running(rows, epoch=LONG_EPOCH), pipeline.collect() as out:
            until(lambda: len(out.rows()) >= 10, "ten rows")
        os.kill(int(pid_file.read_text()), signal.SIGKILL)


def test_waiting_workers_are_leased(pipeline: Pipeline, tmp_path: Path) -> None:
    """Those that were started in advance serve the query, of whatever kind its functions are."""
    spark, pids = pipeline.spark, tmp_path / "pids"

    def note(value: int) -> int:
        with pids.open("a") as lines:
            lines.write(f"{os.getpid()}\n")
        return value

    def workers() -> set[int]:
        return {pid for pid in descendants(os.getpid()) if "tailrace_worker.daemon" in command_line(pid)}

    assert warm_workers(spark) == 0, "nobody has asked for it"
    spark.conf.set("spark.tailrace.warmup.pythonWorkers", "true")
    try:
        assert warm_workers(spark) == 6, "one for each slot"
    finally:
        spark.conf.unset("spark.tailrace.warmup.pythonWorkers")
    # One that served the test before may still be about to end.
    until(lambda: len(workers()) == 6 + 1, "the workers, and the daemon")
    waiting = workers()
    rows = pipeline.rows().select(F.udf(note, "long")("id").alias("id"))
    with pipeline.running(rows, epoch=LONG_EPOCH), pipeline.collect() as out:
        pipeline.send(range(20))
        until(lambda: len(out.rows()) == 20, "the rows")
        assert {int(pid) for pid in pids.read_text().split()} < waiting
        assert workers() == waiting, "no further one was needed"
