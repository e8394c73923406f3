"""Matches of two streams are known by their content. What others write to the output does not count as one."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tailrace import EmbeddedKafka
from tests.helpers.forgery import Forger, content_of
from tests.helpers.topics import Collector, all_messages, headers_of
from tests.helpers.two_streams import LIKE_REAL_TIME, Row, TwoStreams, running
from tests.helpers.waiting import until

# More than there are tasks.
TASKS = 300


@pytest.fixture(scope="module")
def spark(new_session: Callable[..., SparkSession]) -> SparkSession:
    return new_session("local[16]", LIKE_REAL_TIME)


@pytest.fixture
def streams(spark: SparkSession, kafka: EmbeddedKafka) -> TwoStreams:
    return TwoStreams(spark, kafka)


def row(number: int, key: str) -> Row:
    return {"id": number, "key": key, "at": 1_000_000, "value": "1"}


def writer(streams: TwoStreams, output: str, checkpoint: Path) -> DataStreamWriter:
    keys = streams.joined("inner").select("l_key")
    return streams.writer(keys, output, checkpoint, key="l_key").format("tailrace-kafka")


def wait_for(out: Collector, key: str, number: int) -> None:
    until(lambda: sum(one["l_key"] == key for one in out.rows()) >= number, f"{number} of {key}")


def test_a_forged_match_does_not_hide_the_real_one(streams: TwoStreams, checkpoint: Path) -> None:
    output = streams.new_output()
    query = writer(streams, output, checkpoint)
    with Collector(streams.servers, output) as out:
        with running(query) as first:
            streams.send([row(1, "a")], [row(1, "a")])
            wait_for(out, "a", 1)
        forger = Forger(streams.servers, output, str(first.id))
        (real,) = all_messages(streams.servers, output)
        source = headers_of(real)["tailrace-source"].encode()
        value = (real.value() or b"").replace(b'"a"', b'"b"')
        content = hashlib.sha256(content_of(output, b"b", value, [])).hexdigest()[:32].encode()
        for task in range(TASKS):
            identity = f"{first.id}/0/0/0/1/{task}/0".encode()
            headers = [("tailrace-source", source), ("tailrace-row", identity), ("tailrace-content", content)]
            forger.write(b'{"l_key": "forged"}', [*headers], key=b"b")
        streams.send([row(2, "b")], [row(2, "b")])
        with running(query):
            wait_for(out, "b", 1)


def test_a_copied_match_does_not_hide_another_that_looks_the_same(streams: TwoStreams, checkpoint: Path) -> None:
    output = streams.new_output()
    query = writer(streams, output, checkpoint)
    with Collector(streams.servers, output) as out:
        with running(query) as first:
            streams.send([row(1, "a")], [row(1, "a")])
            wait_for(out, "a", 1)
        (real,) = all_messages(streams.servers, output)
        forger = Forger(streams.servers, output, str(first.id))
        forger.write(real.value(), real.headers() or [], key=real.key())  # type: ignore[arg-type]
        with running(query):
            streams.send((), [row(2, "a")])
            # The first match, its copy, and the second one.
            wait_for(out, "a", 3)
            streams.send([row(3, "mark")], [row(3, "mark")])
            wait_for(out, "mark", 1)
            assert sum(one["l_key"] == "a" for one in out.rows()) == 3
