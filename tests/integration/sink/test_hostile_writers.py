"""Others may write to the output topic of `tailrace-kafka`: by mistake, or to do harm. No row is lost by that."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Message
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from tests.helpers.forgery import Forger, Headers, sealed, secret_of
from tests.helpers.pipeline import Pipeline
from tests.helpers.topics import all_messages
from tests.helpers.waiting import until

EPOCH = "10 minutes"
SOON_S = 300
FORGED = b'{"id": -1}'


def start(pipeline: Pipeline, *, epoch: str = EPOCH, **options: str) -> StreamingQuery:
    rows = pipeline.rows().select(F.to_json(F.struct("id")).alias("value"))
    writer = pipeline.writer(rows, "tailrace-kafka").option("topic", pipeline.output).options(**options)
    return writer.trigger(realTime=epoch).start()  # type: ignore[call-overload,no-any-return]


def ids(pipeline: Pipeline) -> Counter[int]:
    found = (json.loads(message.value() or b"{}") for message in all_messages(pipeline.servers, pipeline.output))
    return Counter(row["id"] for row in found if row["id"] >= 0)


def has_all(pipeline: Pipeline, numbers: range) -> None:
    until(lambda: set(ids(pipeline)) >= set(numbers), f"{len(numbers)} rows")
    assert ids(pipeline) == Counter(numbers)


def stopped_after(pipeline: Pipeline, numbers: range) -> Forger:
    """A query has written these rows, and ended before it could commit."""
    pipeline.send(numbers)
    query = start(pipeline)
    has_all(pipeline, numbers)
    query.stop()
    return Forger(pipeline.servers, pipeline.output, str(query.id))


def sources(pipeline: Pipeline, numbers: range) -> list[Message]:
    records = all_messages(pipeline.servers, pipeline.input)
    return [record for record in records if json.loads(record.value() or b"")["id"] in numbers]


def test_a_forged_row_does_not_hide_the_real_one(pipeline: Pipeline) -> None:
    forger = stopped_after(pipeline, range(10))
    real = all_messages(pipeline.servers, pipeline.output)[0]
    codes: Headers = [(name, value) for name, value in real.headers() or () if name == "tailrace-mac"]  # type: ignore[misc,str-unpack]
    pipeline.send(range(10, 20))
    for source in sources(pipeline, range(10, 20)):
        headers = forger.row_headers(source)
        for forged in (
            headers,
            [*headers, *codes],
            [*headers, ("tailrace-mac", b"0" * 32)],
            sealed(b"\0" * 32, pipeline.output, FORGED, headers),
        ):
            forger.write(FORGED, forged)
    start(pipeline)
    has_all(pipeline, range(20))


def test_a_copied_record_changes_nothing(pipeline: Pipeline) -> None:
    forger = stopped_after(pipeline, range(10))
    copied = all_messages(pipeline.servers, pipeline.output)
    for message in copied:
        forger.write(message.value(), message.headers() or [], key=message.key())  # type: ignore[arg-type]
    start(pipeline)
    pipeline.send(range(10, 20))
    until(lambda: set(ids(pipeline)) >= set(range(20)), "all rows")
    assert ids(pipeline) == Counter(range(20)) + Counter(range(10))


@pytest.mark.parametrize("knows_the_secret", [False, True])
def test_a_record_that_no_source_holds_is_not_waited_for(pipeline: Pipeline, *, knows_the_secret: bool) -> None:
    """Also if it is authentic: the source topic may have been created anew."""
    forger = stopped_after(pipeline, range(10))
    secret = secret_of(pipeline.checkpoint) if knows_the_secret else b"\0" * 32
    for source in sources(pipeline, range(10)):
        for headers in (
            forger.row_headers(source, offset=10**12),
            [("tailrace-source", b"elsewhere/0/1"), *forger.row_headers(source)[1:]],
            [("tailrace-source", f"{pipeline.input}/77/1".encode()), *forger.row_headers(source)[1:]],
        ):
            forger.write(FORGED, sealed(secret, pipeline.output, FORGED, headers))
    so_far = len(pipeline.log("commits"))
    start(pipeline, epoch="5 seconds")
    until(lambda: len(pipeline.log("commits")) >= so_far + 2, "commits")
    pipeline.send(range(10, 20))
    has_all(pipeline, range(20))


ODD: list[Headers] = [
    [("tailrace-source", None), ("tailrace-row", None), ("tailrace-mac", None)],
    [("tailrace-source", None)],
    [("tailrace-source", b""), ("tailrace-row", b""), ("tailrace-mac", b"")],
    [("tailrace-source", b"\xff\xfe/0/0"), ("tailrace-row", b"/" * 100_000), ("tailrace-mac", b"\xff" * 32)],
    [("tailrace-source", b"in/0/99999999999999999999"), ("tailrace-row", b"q/0/0/0/1/0/0"), ("tailrace-content", None)],
]


def test_odd_headers_are_those_of_others(pipeline: Pipeline) -> None:
    forger = stopped_after(pipeline, range(10))
    for headers in ODD:
        forger.write(FORGED, headers)
    start(pipeline)
    pipeline.send(range(10, 20))
    has_all(pipeline, range(20))


@contextmanager
def keeps_writing(pipeline: Pipeline, forger: Forger) -> Iterator[None]:
    """As a run that is still alive would: with the secret, and row after row."""
    over = threading.Event()
    source = sources(pipeline, range(1))[0]
    secret = secret_of(pipeline.checkpoint)

    def write() -> None:
        while not over.wait(0.2):
            forger.write(FORGED, sealed(secret, pipeline.output, FORGED, forger.row_headers(source)))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        over.set()
        writer.join()


def test_a_run_that_still_writes_is_not_waited_for_without_end(pipeline: Pipeline) -> None:
    forger = stopped_after(pipeline, range(10))
    with keeps_writing(pipeline, forger):
        query = start(pipeline)
        failure = until(query.exception, "an end of the wait", within_s=SOON_S)
        assert "TAILRACE_OUTPUT_STILL_WRITTEN" in str(failure)
    start(pipeline)
    pipeline.send(range(10, 20))
    has_all(pipeline, range(20))


def test_a_copy_of_the_checkpoint_has_the_same_secret(pipeline: Pipeline) -> None:
    stopped_after(pipeline, range(10))
    secret = secret_of(pipeline.checkpoint)
    moved = pipeline.checkpoint.rename(pipeline.checkpoint.with_name("moved"))
    pipeline.checkpoint = moved
    start(pipeline)
    pipeline.send(range(10, 20))
    has_all(pipeline, range(20))
    assert secret_of(moved) == secret
    assert (moved / "tailrace-sink" / "private").stat().st_mode & 0o777 == 0o700


def test_a_damaged_secret_is_refused(pipeline: Pipeline) -> None:
    stopped_after(pipeline, range(1))
    (pipeline.checkpoint / "tailrace-sink" / "private" / "secret").write_text("v1\n{}")
    with pytest.raises(StreamingQueryException, match="TAILRACE_SINK_FILE_DAMAGED"):
        start(pipeline).awaitTermination(SOON_S)
