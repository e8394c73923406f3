"""What tests of overlapping epochs look at."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import tailrace
from tailrace._spark.slots import busy_slots
from tailrace.contract.snapshot import Boundary
from tests.helpers.pipeline import Pipeline
from tests.helpers.topics import Collector, ContinuousLoad, all_messages

OVERLAP_KEY = "spark.tailrace.epochs.overlap"
# Overlap also epochs that are shorter than is of use, so there are many boundaries in a short time.
SHORT_EPOCHS = {
    "spark.tailrace.testing.overlapShortestMs": "300",
    "spark.sql.streaming.realTimeMode.minBatchDuration": "300",
}
EPOCH = "1 second"
SOON_S = 300


def collected(pipeline: Pipeline) -> Collector:
    return Collector(pipeline.servers, pipeline.output, partitions=1)


def loaded(pipeline: Pipeline) -> ContinuousLoad:
    return ContinuousLoad(pipeline.servers, pipeline.input, per_second=100)


def boundaries(query: StreamingQuery) -> tuple[Boundary, ...]:
    return tailrace.latency(query).figures.boundaries


def overlapped(query: StreamingQuery) -> int:
    return sum(one.overlapped for one in boundaries(query))


def ends(pipeline: Pipeline) -> dict[int, dict[str, int]]:
    """By epoch, where the offset log says that each partition ended."""
    found = {}
    for epoch in pipeline.log("offsets"):
        lines = (pipeline.checkpoint / "offsets" / str(epoch)).read_text().splitlines()
        found[epoch] = next(json.loads(line)[pipeline.input] for line in lines if pipeline.input in line)
    return found


def assert_gap_free(query: StreamingQuery, pipeline: Pipeline) -> None:
    """Each epoch begins where the one before ended, and has read exactly what lies between."""
    progress: list[Any] = [json.loads(one.json) for one in query.recentProgress]
    sources = [next(one for one in each["sources"] if pipeline.input in one["endOffset"]) for each in progress]
    for before, after in pairwise(sources):
        assert after["startOffset"] == before["endOffset"]
    for source in sources:
        # The first epoch has no start offsets, and new partitions begin at their first record.
        start, end = (source["startOffset"] or {}).get(pipeline.input, {}), source["endOffset"][pipeline.input]
        assert source["numInputRows"] == sum(end[at] - start.get(at, 0) for at in end)
    logged = ends(pipeline)
    assert sorted(logged) == list(range(len(logged)))


def assert_in_order(pipeline: Pipeline, rows: list[dict[str, Any]], *, within: str | None = None) -> None:
    """The rows of a source partition were written in the order in which they were read.

    :param within: a column, if only rows with the same value of it have to keep their order.
    """
    source = {}
    for message in all_messages(pipeline.servers, pipeline.input):
        source[json.loads(message.value() or b"")["id"]] = (message.partition(), message.offset())
    last: dict[Any, Any] = {}
    for row in rows:
        partition, offset = source[row["id"]]
        group = (partition, row[within] if within else None)
        assert offset > last.get(group, -1), f"row {row['id']} was overtaken"
        last[group] = offset


def is_parked(query: StreamingQuery) -> bool:
    """The tasks of the next epoch have been started, and wait."""
    tracker = query._jsq.sparkSession().sparkContext().statusTracker()
    active = set(tracker.getActiveJobIds())
    return len(active & set(tracker.getJobIdsForGroup(str(query.runId)))) == 2


def nothing_is_left(spark: SparkSession) -> bool:
    jvm: Any = spark._jvm
    tracker = spark.sparkContext.statusTracker()
    threads = [thread.getName() for thread in jvm.java.lang.Thread.getAllStackTraces().keySet()]
    return (
        not tracker.getActiveJobsIds()
        and busy_slots(spark) == 0
        and not [name for name in threads if name.startswith(("tailrace-epoch-ahead", "tailrace-dead-letters"))]
        and jvm.org.apache.spark.sql.tailrace.epoch.overlap.HandOvers.size() == 0
    )


def assert_continues(pipeline: Pipeline) -> None:
    logged = ends(pipeline)
    assert sorted(logged) == list(range(len(logged)))
    for before, after in pairwise(logged[epoch] for epoch in sorted(logged)):
        assert all(after[at] >= before[at] for at in before)
