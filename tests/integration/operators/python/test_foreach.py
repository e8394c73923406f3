"""`writeStream.foreach` with Python: row by row, with Spark's contract for open, process and close."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from tests.helpers.pipeline import Pipeline
from tests.helpers.waiting import let_pass, until

LONG_EPOCH = "10 minutes"

# Executors of a cluster cannot import the tests; what they run travels as it is.
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]


@pytest.fixture(scope="module", params=["local[6]", pytest.param("local-cluster[2,3,1024]", marks=pytest.mark.chaos)])
def spark(new_session: Callable[[str], SparkSession], request: pytest.FixtureRequest) -> SparkSession:
    """In one JVM, and on two executors in processes of their own."""
    return new_session(request.param)


class Notes:
    """What a writer did, line by line, seen from another process."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, **note: Any) -> None:
        with self.path.open("a") as lines:
            lines.write(json.dumps({**note, "at_ns": time.time_ns()}) + "\n")

    def read(self, what: str) -> list[dict[str, Any]]:
        if not self.path.exists():
            return []
        notes = [json.loads(line) for line in self.path.read_text().splitlines()]
        return [note for note in notes if note["what"] == what]


@pytest.fixture
def notes(tmp_path: Path) -> Notes:
    return Notes(tmp_path / "notes")


class Writer:
    """As PySpark's documentation has it."""

    def __init__(self, notes: Notes, *, fails_at: int = -1, takes: bool = True) -> None:
        self.notes = notes
        self.fails_at = fails_at
        self.takes = takes

    def open(self, partition_id: int, epoch_id: int) -> bool:
        self.partition, self.epoch = partition_id, epoch_id
        self.notes.add(what="open", partition=partition_id, epoch=epoch_id)
        return self.takes

    def process(self, row: Row) -> None:
        if row.id == self.fails_at:
            raise ValueError(f"cannot write {row.id}")
        self.notes.add(what="process", id=row.id, partition=self.partition, epoch=self.epoch)

    def close(self, error: BaseException | None) -> None:
        self.notes.add(what="close", error=None if error is None else str(error), partition=self.partition)


def start(pipeline: Pipeline, rows: DataFrame, writer: Any, *, epoch: str = LONG_EPOCH) -> StreamingQuery:
    stream: Any = rows.writeStream.foreach(writer).outputMode("update")
    return stream.option("checkpointLocation", str(pipeline.checkpoint)).trigger(realTime=epoch).start()  # type: ignore[no-any-return]


def test_a_function_gets_each_row_at_once(pipeline: Pipeline, notes: Notes) -> None:
    query = start(pipeline, pipeline.rows(), lambda row: notes.add(what="row", id=row.id, key=row.key))
    for number in range(10):
        pipeline.send(range(number, number + 1))
        until(lambda: len(notes.read("row")) == number + 1, f"row {number}")  # noqa: B023
    assert query.lastProgress is None, "an epoch ended: this test would prove nothing"
    assert [note["id"] for note in notes.read("row")] == list(range(10))
    query.stop()


def rows_out(query: StreamingQuery) -> int:
    return sum(progress["sink"]["numOutputRows"] for progress in query.recentProgress)


def test_open_and_close_frame_each_epoch(pipeline: Pipeline, notes: Notes) -> None:
    query = start(pipeline, pipeline.rows(), Writer(notes), epoch="5 seconds")
    for number in range(40):
        pipeline.send(range(number, number + 1))
        let_pass(0.3)
    # On a busy machine a short epoch can end before a partition's worker is up; its rows then come in the next one.
    until(lambda: {note["id"] for note in notes.read("process")} == set(range(40)), "every row")
    until(lambda: len(notes.read("close")) >= 4, "two epochs of two partitions")
    # An epoch's writers are closed before its progress is reported.
    until(lambda: rows_out(query) > 0, "rows in the progress")
    query.stop()
    until(lambda: len(notes.read("close")) == len(notes.read("open")), "a close for each open")
    opened = [(note["partition"], note["epoch"]) for note in notes.read("open")]
    assert {partition for partition, _ in opened} == {0, 1}
    assert {0, 1} <= {epoch for _, epoch in opened}
    assert len(opened) == len(set(opened))
    assert {note["error"] for note in notes.read("close")} == {None}


def test_an_error_surfaces_at_once_and_close_gets_it(pipeline: Pipeline, notes: Notes) -> None:
    query = start(pipeline, pipeline.rows(), Writer(notes, fails_at=5))
    pipeline.send(range(5), keys=1)
    until(lambda: len(notes.read("process")) == 5, "the rows before")
    pipeline.send(range(5, 6), keys=1)
    failure = until(query.exception, "the failure though no row follows")
    message = str(failure)
    assert "ValueError: cannot write 5" in message
    assert f"topic '{pipeline.input}'" in message
    assert "offset 5" in message
    assert "cannot write 5" in [note["error"] for note in notes.read("close")]

    again = start(pipeline, pipeline.rows(), Writer(notes))
    until(lambda: {note["id"] for note in notes.read("process")} == set(range(6)), "every row, after the restart")
    again.stop()


def test_the_record_is_named_within_a_large_batch(pipeline: Pipeline, notes: Notes) -> None:
    pipeline.send(range(2000), keys=1)
    failure = until(start(pipeline, pipeline.rows(), Writer(notes, fails_at=1234)).exception, "the failure")
    assert "offset 1234" in str(failure)


def test_open_may_refuse_an_epoch(pipeline: Pipeline, notes: Notes) -> None:
    query = start(pipeline, pipeline.rows(), Writer(notes, takes=False), epoch="5 seconds")
    pipeline.send(range(10))
    until(lambda: query.lastProgress is not None, "the epoch's end")
    assert query.exception() is None
    assert len(notes.read("open")) >= 2
    assert notes.read("process") == []
    query.stop()


def test_rows_keep_their_types_and_may_come_from_a_shuffle(pipeline: Pipeline, notes: Notes) -> None:
    counts = pipeline.rows().groupBy("key").agg(F.count("*").alias("n"), F.collect_list("id").alias("ids"))

    def write(row: Row) -> None:
        assert isinstance(row, Row)
        notes.add(what="row", key=row["key"], n=row.n, ids=row.ids)

    query = start(pipeline, counts.select("key", "n", "ids"), write)
    pipeline.send(range(30), keys=3)
    expected = {"k0": (10, list(range(0, 30, 3))), "k1": (10, list(range(1, 30, 3))), "k2": (10, list(range(2, 30, 3)))}
    until(
        lambda: {note["key"]: (note["n"], sorted(note["ids"])) for note in notes.read("row")} == expected,
        "three counts of ten, each with its list",
    )
    query.stop()


def test_a_udf_below_foreach(pipeline: Pipeline, notes: Notes) -> None:
    doubled = pipeline.rows().select("id", F.udf(lambda value: value * 2, "long")("id").alias("double"))
    query = start(pipeline, doubled, lambda row: notes.add(what="row", id=row.id, double=row.double))
    pipeline.send(range(10))
    until(lambda: len(notes.read("row")) == 10, "ten rows")
    assert {note["id"]: note["double"] for note in notes.read("row")} == {i: 2 * i for i in range(10)}
    query.stop()
