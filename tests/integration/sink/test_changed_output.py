"""`tailrace-kafka` when its topic, its cluster or its query is another one than in the last run: no row is lost."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

import tailrace
from tailrace import EmbeddedKafka
from tailrace._process.machine_load import stretched
from tailrace.kafka import create_topics
from tests.helpers.fingerprints import fingerprints
from tests.helpers.pipeline import Pipeline
from tests.helpers.topics import all_messages, create_again, new_topic
from tests.helpers.tree import ROOT
from tests.helpers.waiting import until

SINK = "tailrace-kafka"
EPOCH = "10 minutes"
SOON_S = 300
WITHIN_MIN = 5
SENT_FIRST, SENT = 20, 25


@pytest.fixture(scope="module")
def other_kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka() as broker:
        yield broker


def start(pipeline: Pipeline, rows: DataFrame, topic: str, **options: str) -> StreamingQuery:
    writer = pipeline.writer(rows, SINK).option("topic", topic).options(**options)
    return writer.trigger(realTime=EPOCH).start()  # type: ignore[call-overload,no-any-return]


def values_in(servers: str, topic: str) -> list[dict[str, Any]]:
    return [json.loads(message.value() or b"") for message in all_messages(servers, topic)]


def ids_in(servers: str, topic: str) -> Counter[int]:
    return Counter(value["id"] for value in values_in(servers, topic))


def has_all(servers: str, topic: str, ids: range) -> None:
    until(lambda: set(ids) <= set(ids_in(servers, topic)), f"{ids} are in {topic}")


def numbered(pipeline: Pipeline) -> DataFrame:
    return pipeline.rows().select("key", F.to_json(F.struct("id")).alias("value"))


def at_random(pipeline: Pipeline) -> DataFrame:
    """Rows that only their number tells apart from those of another run."""
    return pipeline.rows().select("key", F.to_json(F.struct("id", F.rand().alias("chance"))).alias("value"))


@pytest.mark.parametrize("query_of", [numbered, at_random])
def test_another_topic_gets_all_rows_of_the_open_epoch(pipeline: Pipeline, query_of: Any) -> None:
    old, new = pipeline.output, new_topic(pipeline.servers, "new")
    pipeline.send(range(SENT_FIRST))
    query = start(pipeline, query_of(pipeline), old)
    has_all(pipeline.servers, old, range(SENT_FIRST))
    query.stop()
    pipeline.send(range(SENT_FIRST, SENT))
    query = start(pipeline, query_of(pipeline), new)
    has_all(pipeline.servers, new, range(SENT))
    query.stop()
    # The same query again, but rows of the old one are still there: only equal rows are recognized.
    pipeline.send(range(SENT, SENT + 5))
    query = start(pipeline, query_of(pipeline), new)
    has_all(pipeline.servers, new, range(SENT + 5))
    tailrace.drain(query, timeout_s=stretched(SOON_S))
    assert ids_in(pipeline.servers, old) == Counter(range(SENT_FIRST))
    if query_of is numbered:
        assert ids_in(pipeline.servers, new) == Counter(range(SENT + 5))
    # All rows of the old query have been replayed, so the count of a record's rows means something again.
    pipeline.send(range(SENT + 5, SENT + 10))
    before = ids_in(pipeline.servers, new).total()
    for _ in range(2):
        query = start(pipeline, query_of(pipeline), new)
        has_all(pipeline.servers, new, range(SENT + 10))
        query.stop()
    pipeline.send(range(SENT + 10, SENT + 11))
    query = start(pipeline, query_of(pipeline), new)
    has_all(pipeline.servers, new, range(SENT + 11))
    assert ids_in(pipeline.servers, new).total() == before + 6


def test_another_query_writes_what_it_makes(pipeline: Pipeline) -> None:
    """Of each record it makes another row than the old one did, in place of which it must not be dropped."""
    pipeline.send(range(SENT_FIRST))
    query = start(pipeline, numbered(pipeline), pipeline.output)
    has_all(pipeline.servers, pipeline.output, range(SENT_FIRST))
    query.stop()
    pipeline.send(range(SENT_FIRST, SENT))
    doubled = pipeline.rows().select("key", F.to_json(F.struct("id", (F.col("id") * 2).alias("double"))).alias("value"))
    query = start(pipeline, doubled, pipeline.output)

    def doubles() -> Counter[int]:
        return Counter(value["id"] for value in values_in(pipeline.servers, pipeline.output) if "double" in value)

    until(lambda: set(doubles()) == set(range(SENT)), "the new query's rows")
    assert doubles() == Counter(range(SENT))


def test_a_topic_that_was_created_again(pipeline: Pipeline) -> None:
    recreated_after_a_commit(pipeline, pipeline.servers)


def test_a_topic_of_the_same_name_on_another_cluster(pipeline: Pipeline, other_kafka: EmbeddedKafka) -> None:
    create_topics(other_kafka.bootstrap_servers, [pipeline.output], partitions=2)
    recreated_after_a_commit(pipeline, other_kafka.bootstrap_servers)


def recreated_after_a_commit(pipeline: Pipeline, servers: str) -> None:
    """What was logged of the old topic is beyond the end of the new one, which the next runs must read all the same."""
    topic = pipeline.output
    rows = numbered(pipeline)
    pipeline.send(range(SENT_FIRST))
    query = start(pipeline, rows, topic)
    has_all(pipeline.servers, topic, range(SENT_FIRST))
    tailrace.drain(query, timeout_s=stretched(SOON_S))
    if servers == pipeline.servers:
        create_again(servers, topic)
    later = range(SENT_FIRST, SENT)
    pipeline.send(later)
    for _ in range(3):
        query = start(pipeline, rows, topic, **{"kafka.bootstrap.servers": servers})
        has_all(servers, topic, later)
        query.stop()
    query = start(pipeline, rows, topic, **{"kafka.bootstrap.servers": servers})
    pipeline.send(range(SENT, SENT + 5))
    has_all(servers, topic, range(SENT_FIRST, SENT + 5))
    assert ids_in(servers, topic) == Counter(range(SENT_FIRST, SENT + 5))


def test_a_query_has_the_same_fingerprint_in_each_process(spark: SparkSession) -> None:
    here = fingerprints(spark)
    assert here == fingerprints_of_another_process()
    # And each query one of its own.
    assert len(set(here.values())) == len(here)


def fingerprints_of_another_process() -> dict[str, str]:
    done = subprocess.run(
        [sys.executable, "-m", fingerprints.__module__],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60 * WITHIN_MIN,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout.splitlines()[-1]))
