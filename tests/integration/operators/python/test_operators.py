"""What a user's Python can do in Real-Time Mode, without a change, on two executors."""

from __future__ import annotations

import itertools
import shutil
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession, functions

import tailrace
from tests.helpers.pipeline import Pipeline
from tests.helpers.waiting import until
from tests.integration.monitor.queries import delivered, distribution

# PySpark's types know neither vectorized functions nor arguments by name.
F: Any = functions

LONG_EPOCH = "10 minutes"
ROWS = 40


@pytest.fixture(scope="module")
def spark(new_session: Callable[[str], SparkSession]) -> SparkSession:
    """Two executors in processes of their own; most other tests run in one JVM."""
    return new_session("local-cluster[2,4,1024]")


def outcome(pipeline: Pipeline, query: DataFrame, *, rows: int, expect: int | None = None) -> list[dict[str, Any]]:
    """What comes out of the first epoch while it lasts, for as many rows in."""
    pipeline.send(range(rows))
    wanted = rows if expect is None else expect
    with pipeline.collect() as out, pipeline.running(query, epoch=LONG_EPOCH) as started:
        until(lambda: len(out.rows()) >= wanted or started.exception(), f"{wanted} rows in one epoch")
        assert started.lastProgress is None or started.exception()
        assert "RealTime" in started._jsq.explainInternal(False)
        return sorted(out.rows(), key=lambda row: row["id"])


def plus(amount: int) -> Any:
    return F.udf(lambda value: value + amount, "long")


def test_several_functions_in_one_select(pipeline: Pipeline) -> None:
    query = pipeline.rows().select("id", plus(1)("id").alias("a"), plus(2)("id").alias("b"), "key")
    rows = outcome(pipeline, query, rows=20)
    assert [(row["a"], row["b"], row["key"]) for row in rows] == [(i + 1, i + 2, f"k{i % 10}") for i in range(20)]


def test_chained_functions_of_one_kind_and_of_several(pipeline: Pipeline) -> None:
    pickled = F.udf(lambda value: value * 2, "long", useArrow=False)
    pandas = F.pandas_udf(lambda values: values + 100, "long")
    query = pipeline.rows().select("id", pandas(pickled(plus(1)(plus(2)("id")))).alias("value"))
    assert [row["value"] for row in outcome(pipeline, query, rows=20)] == [(i + 3) * 2 + 100 for i in range(20)]


def test_a_function_in_a_filter(pipeline: Pipeline) -> None:
    odd = F.udf(lambda value: value % 2 == 1, "boolean")
    query = pipeline.rows().filter(odd("id"))
    assert [row["id"] for row in outcome(pipeline, query, rows=20, expect=10)] == list(range(1, 20, 2))


def test_arguments_by_name(pipeline: Pipeline) -> None:
    spell = F.udf(lambda key, number: f"{key}:{number}", "string")
    query = pipeline.rows().select("id", spell(number=F.col("id"), key=F.col("key")).alias("value"))
    assert [row["value"] for row in outcome(pipeline, query, rows=5)] == [f"k{i}:{i}" for i in range(5)]


def test_functions_registered_for_sql(pipeline: Pipeline) -> None:
    pipeline.spark.udf.register("thrice", lambda value: value * 3, "long")
    pipeline.rows().createOrReplaceTempView("incoming")
    query = pipeline.spark.sql("SELECT id, thrice(id) AS value FROM incoming WHERE thrice(id) > 6")
    assert [row["value"] for row in outcome(pipeline, query, rows=6, expect=3)] == [9, 12, 15]


def test_broadcast_variables_and_accumulators(pipeline: Pipeline) -> None:
    context = pipeline.spark.sparkContext
    names = context.broadcast({number: f"name-{number}" for number in range(100)})
    called = context.accumulator(0)

    def name(value: int) -> str:
        called.add(1)
        return names.value[value]

    query = pipeline.rows().select("id", F.udf(name, "string")("id").alias("name"))
    pipeline.send(range(10))
    with pipeline.collect() as out, pipeline.running(query, epoch="5 seconds"):
        until(lambda: len(out.rows()) == 10, "ten rows")
        # An accumulator's updates reach the driver with the end of a task, which is the end of an epoch.
        until(lambda: called.value == 10, "ten calls counted")
    assert sorted(row["name"] for row in out.rows()) == sorted(f"name-{i}" for i in range(10))


def test_files_and_archives_of_the_users(pipeline: Pipeline, tmp_path: Path) -> None:
    module = tmp_path / "users_module.py"
    module.write_text("def shout(text):\n    return text.upper()\n")
    pipeline.spark.sparkContext.addPyFile(str(module))
    folder = tmp_path / "table"
    folder.mkdir()
    (folder / "greeting.txt").write_text("hello")
    archive = shutil.make_archive(str(tmp_path / "table"), "zip", folder)
    assert zipfile.is_zipfile(archive)
    pipeline.spark.sparkContext.addArchive(f"{archive}#table")

    def greet(key: str) -> str:
        from pyspark import SparkFiles
        from users_module import shout  # type: ignore[import-not-found]

        return str(shout(Path(SparkFiles.get("table"), "greeting.txt").read_text() + " " + key))

    query = pipeline.rows().select("id", F.udf(greet, "string")("key").alias("value"))
    assert [row["value"] for row in outcome(pipeline, query, rows=3)] == ["HELLO K0", "HELLO K1", "HELLO K2"]


def test_before_and_after_a_shuffle(pipeline: Pipeline) -> None:
    bucket = F.udf(lambda value: value % 3, "long")
    label = F.pandas_udf(lambda values: "n=" + values.astype(str), "string")
    counts = pipeline.rows().groupBy(bucket("id").alias("id")).agg(F.count("*").alias("n"))
    rows = outcome(pipeline, counts.select("id", label("n").alias("label")), rows=30)
    final = {number: max(int(row["label"][2:]) for row in rows if row["id"] == number) for number in range(3)}
    assert final == {0: 10, 1: 10, 2: 10}


def test_a_map_that_drops_and_adds_rows(pipeline: Pipeline) -> None:
    def twice_the_even(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for frame in frames:
            even = frame[frame["id"] % 2 == 0]
            yield even
            yield even.assign(key="again")

    query = pipeline.rows().mapInPandas(twice_the_even, "id LONG, key STRING, sent_ns LONG")
    rows = outcome(pipeline, query, rows=40, expect=40)
    assert [row["id"] for row in rows] == [i for i in range(0, 40, 2) for _ in range(2)]
    assert sum(row["key"] == "again" for row in rows) == 20


def test_a_map_that_gives_nothing_for_long_goes_on(pipeline: Pipeline) -> None:
    """Batches without a result must not use up what may be with the worker."""

    def only_the_last(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for frame in frames:
            yield frame[frame["id"] >= 39]

    query = pipeline.rows().mapInPandas(only_the_last, "id LONG, key STRING, sent_ns LONG")
    with pipeline.collect() as out, pipeline.running(query, epoch=LONG_EPOCH):
        for number in range(41):
            pipeline.send(range(number, number + 1))
        until(lambda: len(out.rows()) == 2, "the two rows that pass")


def test_a_map_may_stop_before_its_input_does(pipeline: Pipeline) -> None:
    """As in micro-batch, the rest of the epoch is not asked for, and the epoch ends as usual."""

    def first_frame(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        yield from itertools.islice(frames, 1)

    query = pipeline.rows().mapInPandas(first_frame, "id LONG, key STRING, sent_ns LONG")
    pipeline.send(range(100))
    with pipeline.collect() as out, pipeline.running(query, epoch="5 seconds") as started:
        until(lambda: started.lastProgress is not None, "the epoch's end")
        assert started.exception() is None
        assert 0 < len(out.rows()) < 100


def test_a_function_over_an_iterator_loads_its_model_once_an_epoch(pipeline: Pipeline) -> None:
    loads = pipeline.spark.sparkContext.accumulator(0)

    def score(batches: Iterator[pd.Series]) -> Iterator[pd.Series]:
        loads.add(1)
        for batch in batches:
            yield batch + 1

    query = pipeline.rows().select("id", F.pandas_udf(score, "long")("id").alias("score"))
    with pipeline.collect() as out, pipeline.running(query, epoch="5 seconds") as started:
        for number in range(20):
            pipeline.send(range(number, number + 1))
        until(lambda: len(out.rows()) == 20, "twenty scores")
        until(lambda: loads.value >= 2, "both tasks of the first epoch")
        epochs = len(pipeline.log("commits")) + 1
        assert loads.value <= 2 * epochs
        assert started.exception() is None
    assert {row["id"]: row["score"] for row in out.rows()} == {i: i + 1 for i in range(20)}


def test_executors_report_to_the_driver(pipeline: Pipeline) -> None:
    """Not of Python alone; it is here because to start executors takes longer than the rest of the test."""
    pipeline.send(range(ROWS))
    with pipeline.running(pipeline.counts(), epoch=LONG_EPOCH) as query:
        report = until(lambda: delivered(query, ROWS), "all rows")
        assert distribution(report, "shuffle").count == ROWS
        assert len(report.to_dict()["partitions"]) == 2
        monitor = tailrace.monitor.monitor_of(pipeline.spark)
        until(lambda: len(monitor.snapshot().executors) >= 2, "both executors")
