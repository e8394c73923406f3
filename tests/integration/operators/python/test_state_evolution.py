"""A state whose schema gets another column from one run to the next: the same in Real-Time Mode as in micro-batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

import tailrace
from tailrace import EmbeddedKafka
from tests.helpers.parity import WITH_STATE, seen
from tests.helpers.pipeline import Pipeline
from tests.helpers.topics import Collector
from tests.helpers.waiting import until

ENCODING = "spark.sql.streaming.stateStore.encodingFormat"
SOON_S = 300
MODES = ("micro-batch", "real-time")


@pytest.fixture(scope="module")
def spark(new_session: Callable[..., SparkSession]) -> SparkSession:
    return new_session("local[6]", WITH_STATE)


class Remembering(StatefulProcessor):
    """Tells what it finds in its states, and then stores the row's number in the first column of each."""

    def __init__(self, columns: str) -> None:
        self.columns = columns
        self.more = columns.count(",")

    def init(self, handle: Any) -> None:
        self.value = handle.getValueState("value", self.columns)
        self.list = handle.getListState("list", self.columns)
        self.map = handle.getMapState("map", "k STRING", self.columns)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        for row in rows:
            stored = (row.id, *("new" for _ in range(self.more)))
            yield Row(id=row.id, seen=seen([self.value.get(), list(self.list.get()), self.map.getValue(("k",))]))
            self.value.update(stored)
            self.list.appendValue(stored)
            self.map.updateValue(("k",), stored)


def remembering(pipeline: Pipeline, columns: str) -> DataFrame:
    rows = pipeline.rows().groupBy("key")
    return rows.transformWithState(Remembering(columns), "id LONG, seen STRING", "Update", "None")


def run(pipeline: Pipeline, out: Collector, mode: str, columns: str, number: int) -> list[str]:
    """One row through a run of its own; what the processor has seen."""
    pipeline.send(range(number, number + 1), keys=1)

    def of_row(query: StreamingQuery) -> list[str]:
        if (failure := query.exception()) is not None:
            raise failure
        return [row["seen"] for row in out.rows() if row["id"] == number]

    epoch = "10 minutes" if mode == "real-time" else None
    with pipeline.running(remembering(pipeline, columns), epoch=epoch) as query:
        until(lambda: of_row(query), "the row")
        if mode == "real-time":
            tailrace.drain(query, timeout_s=SOON_S)
        else:
            query.processAllAvailable()
        return of_row(query)


def runs(spark: SparkSession, kafka: EmbeddedKafka, checkpoint: Path, mode: str) -> list[list[str]]:
    pipeline = Pipeline(spark, kafka, checkpoint)
    with pipeline.collect() as out:
        return [
            run(pipeline, out, mode, columns, number)
            for number, columns in enumerate(["n LONG", "n LONG, label STRING", "n LONG, label STRING"])
        ]


def test_a_new_column_is_null_in_what_was_stored_before(
    spark: SparkSession, kafka: EmbeddedKafka, tmp_path: Path
) -> None:
    spark.conf.set(ENCODING, "avro")
    try:
        found = {mode: runs(spark, kafka, tmp_path / mode, mode) for mode in MODES}
    finally:
        spark.conf.unset(ENCODING)
    assert found["real-time"] == found["micro-batch"]
    assert "None" not in found["real-time"][1][0]
    assert "label" in found["real-time"][1][0], "the old value has the new column"


@pytest.mark.parametrize("mode", MODES)
def test_without_a_format_that_can_evolve_it_is_refused(
    spark: SparkSession, kafka: EmbeddedKafka, checkpoint: Path, mode: str
) -> None:
    with pytest.raises(StreamingQueryException, match="STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE"):
        runs(spark, kafka, checkpoint, mode)
