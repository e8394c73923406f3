"""In everything else, `tailrace-kafka` is Spark's Kafka sink: its columns and options, and what it refuses."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.functions import udf
from pyspark.sql.streaming.query import StreamingQuery

import tailrace
from tailrace import EmbeddedKafka, TailraceError
from tailrace._process.machine_load import stretched
from tests.helpers.forgery import sealed, secret_of
from tests.helpers.pipeline import Pipeline
from tests.helpers.topics import all_messages, headers_of, new_topic
from tests.helpers.waiting import let_pass, until

SINK = "tailrace-kafka"
EPOCH = "10 minutes"
SOON_S = 300


def start(pipeline: Pipeline, rows: DataFrame, *, epoch: str = EPOCH, **options: str) -> StreamingQuery:
    writer = pipeline.writer(rows, SINK).options(**options)
    return writer.trigger(realTime=epoch).start()  # type: ignore[call-overload,no-any-return]


def messages(pipeline: Pipeline, topic: str, *, committed: bool = False) -> list[Message]:
    return all_messages(pipeline.servers, topic, committed=committed)


def has_written(pipeline: Pipeline, topic: str, number: int) -> Callable[[], bool]:
    return lambda: len(messages(pipeline, topic)) >= number


def test_all_columns_of_sparks_sink(pipeline: Pipeline) -> None:
    other = new_topic(pipeline.servers, "other")
    rows = pipeline.rows().select(
        F.col("id").cast("string").cast("binary").alias("key"),
        F.to_json(F.struct("id")).alias("value"),
        F.when(F.col("id") % 2 == 0, pipeline.output).otherwise(other).alias("topic"),
        (F.col("id") % 4 >= 2).cast("int").alias("partition"),
        F.array(F.struct(F.lit("mine").alias("key"), F.lit(b"here").alias("value"))).alias("headers"),
    )
    pipeline.send(range(40))
    query = start(pipeline, rows)
    for topic, remainder in ((pipeline.output, 0), (other, 1)):
        until(has_written(pipeline, topic, 20), "rows")
        found = messages(pipeline, topic)
        ids = [int(message.key() or b"") for message in found]
        assert sorted(ids) == list(range(remainder, 40, 2))
        assert all((id % 4 >= 2) == (message.partition() == 1) for id, message in zip(ids, found, strict=True))
        assert {headers_of(message)["mine"] for message in found} == {"here"}
    query.stop()
    # A topic that only the rows name is read back as well.
    query = start(pipeline, rows)
    pipeline.send(range(40, 44))
    until(has_written(pipeline, other, 22), "more rows")
    until(has_written(pipeline, pipeline.output, 22), "more rows")
    assert len(messages(pipeline, other)) == len(messages(pipeline, pipeline.output)) == 22


def test_each_record_says_what_it_was_made_of(pipeline: Pipeline) -> None:
    pipeline.send(range(10))
    rows = pipeline.raw().select("value", F.explode(F.array(F.lit("a"), F.lit("b"))).alias("key"))
    query = start(pipeline, rows, topic=pipeline.output)
    until(has_written(pipeline, pipeline.output, 20), "rows")
    sources = messages(pipeline, pipeline.input)
    records = {message.value(): f"{message.topic()}/{message.partition()}/{message.offset()}" for message in sources}
    found = messages(pipeline, pipeline.output)
    assert all(headers_of(message)["tailrace-source"] == records[message.value()] for message in found)
    identities = {tuple(headers_of(message)["tailrace-row"].split("/")[:4]) for message in found}
    assert identities == {(str(query.id), "0", "0", "0"), (str(query.id), "0", "0", "1")}


def test_what_was_dropped_is_in_the_progress(pipeline: Pipeline) -> None:
    pipeline.send(range(30))
    rows = pipeline.raw()
    query = start(pipeline, rows, topic=pipeline.output)
    until(has_written(pipeline, pipeline.output, 30), "rows")
    query.stop()
    query = start(pipeline, rows, topic=pipeline.output, epoch="5 seconds")
    progress: Any = until(lambda: query.lastProgress, "an epoch")
    assert progress["sink"]["metrics"] == {"deduplicated": "30", "corrected": "0", "madeByTime": "0"}
    assert len(messages(pipeline, pipeline.output)) == 30


def test_epochs_end_and_runs_end_in_turn(pipeline: Pipeline) -> None:
    rows = pipeline.rows().select(F.to_json(F.struct("id")).alias("value"))
    sent = 0
    for end in ("stop", "drain", "epoch", "stop", "epoch", "drain"):
        query = start(pipeline, rows, topic=pipeline.output, epoch="5 seconds" if end == "epoch" else EPOCH)
        commits = len(pipeline.log("commits"))
        pipeline.send(range(sent, sent + 20))
        sent += 20
        until(has_written(pipeline, pipeline.output, sent), "rows")
        if end == "drain":
            tailrace.drain(query, timeout_s=stretched(SOON_S))
        elif end == "epoch":
            until(lambda: len(pipeline.log("commits")) > commits, "a commit")  # noqa: B023
        query.stop()
    ids = Counter(json.loads(message.value() or b"")["id"] for message in messages(pipeline, pipeline.output))
    assert ids == Counter(range(sent))


def test_transactions_are_for_those_who_read_committed_records(pipeline: Pipeline) -> None:
    rows = pipeline.raw()
    for run in (1, 2, 3):
        pipeline.send(range(20 * (run - 1), 20 * run))
        # To switch them off and on again changes nothing of the promise.
        options = {} if run == 2 else {"transactionInterval": "20 ms"}
        query = start(pipeline, rows, topic=pipeline.output, **options)
        until(lambda: len(messages(pipeline, pipeline.output, committed=True)) >= 20 * run, "rows")  # noqa: B023
        query.stop()
    values = Counter(message.value() for message in messages(pipeline, pipeline.output, committed=True))
    assert set(values.values()) == {1}
    assert len(values) == 60


def test_a_writer_that_was_cut_off_is_fenced(pipeline: Pipeline) -> None:
    """With transactions, what a run that is believed dead writes later does not count."""
    pipeline.send(range(10))
    query = start(pipeline, pipeline.raw(), topic=pipeline.output, transactionInterval="20 ms")
    until(lambda: len(messages(pipeline, pipeline.output, committed=True)) == 10, "rows")
    query.stop()
    zombie = Producer(
        {"bootstrap.servers": pipeline.servers, "transactional.id": f"tailrace-{query.id}-0", "linger.ms": 0}
    )
    zombie.init_transactions(30)
    zombie.begin_transaction()
    zombie.produce(pipeline.output, b"from the past")
    zombie.flush(10)
    query = start(pipeline, pipeline.raw(), topic=pipeline.output, transactionInterval="20 ms")
    pipeline.send(range(10, 20))
    until(lambda: len(messages(pipeline, pipeline.output, committed=True)) == 20, "rows")
    with pytest.raises(KafkaException, match=r"(?i)fenced"):
        zombie.commit_transaction(10)
    assert b"from the past" not in {one.value() for one in messages(pipeline, pipeline.output, committed=True)}


def test_rows_that_kafka_has_deleted_do_not_come_last(pipeline: Pipeline) -> None:
    """A compacted topic loses older rows of a key. Written again they would hide the newer ones."""
    admin = AdminClient({"bootstrap.servers": pipeline.servers})
    policy = ConfigEntry("cleanup.policy", "compact,delete", incremental_operation=AlterConfigOpType.SET)
    topic = ConfigResource(ConfigResource.Type.TOPIC, pipeline.output, incremental_configs=[policy])
    for changed in admin.incremental_alter_configs([topic]).values():
        changed.result(30)
    pipeline.send(range(10), keys=1)
    rows = pipeline.rows().select("key", F.to_json(F.struct("id")).alias("value"))
    query = start(pipeline, rows, topic=pipeline.output)
    until(has_written(pipeline, pipeline.output, 10), "rows")
    query.stop()
    (partition,) = {message.partition() for message in messages(pipeline, pipeline.output)}
    for deleted in admin.delete_records([TopicPartition(pipeline.output, partition or 0, 5)]).values():
        deleted.result(30)
    query = start(pipeline, rows, topic=pipeline.output)
    pipeline.send(range(10, 11), keys=1)
    until(lambda: ids_in(pipeline)[-1:] == [10], "a new row")
    assert ids_in(pipeline) == [*range(5, 11)]


def ids_in(pipeline: Pipeline) -> list[int]:
    return [json.loads(message.value() or b"")["id"] for message in messages(pipeline, pipeline.output)]


BAD: list[tuple[Callable[[DataFrame], DataFrame], dict[str, str], str]] = [
    (lambda rows: rows.select(F.col("value").alias("payload")), {"topic": "t"}, "TAILRACE_KAFKA_SINK"),
    (lambda rows: rows.select("value"), {}, "TAILRACE_KAFKA_SINK"),
    (lambda rows: rows.select("value", F.lit(1).alias("key")), {"topic": "t"}, "TAILRACE_KAFKA_SINK"),
    (lambda rows: rows.select("value", F.lit(1).alias("headers")), {"topic": "t"}, "TAILRACE_BAD_SINK_COLUMNS"),
    (lambda rows: rows.select("value"), {"topic": "t", "kafka.acks": "1"}, "TAILRACE_BAD_SINK_OPTION"),
    (lambda rows: rows.select("value"), {"topic": "t", "kafka.transactional.id": "x"}, "TAILRACE_BAD_SINK_OPTION"),
    (
        lambda rows: rows.select("value"),
        {"topic": "t", "kafka.enable.idempotence": "false"},
        "TAILRACE_BAD_SINK_OPTION",
    ),
    (lambda rows: rows.select("value"), {"topic": "t", "transactionInterval": "soon"}, "TAILRACE_BAD_SINK_OPTION"),
    (
        lambda rows: rows.select("value").mapInPandas(lambda frames: frames, "value string"),
        {"topic": "t"},
        "TAILRACE_NO_ROW_IDENTITY",
    ),
]


@pytest.mark.parametrize(("change", "options", "code"), BAD)
def test_what_cannot_be_promised_is_refused(
    pipeline: Pipeline, change: Callable[[DataFrame], DataFrame], options: dict[str, str], code: str
) -> None:
    with pytest.raises((TailraceError, StreamingQueryException), match=code) as refused:
        start(pipeline, change(pipeline.raw()), **options).awaitTermination(SOON_S)
    assert "Fix:" in str(refused.value)


def test_micro_batch_is_refused(pipeline: Pipeline) -> None:
    with pytest.raises(Exception, match="TAILRACE_SINK_NEEDS_REAL_TIME"):
        pipeline.writer(pipeline.raw(), SINK).option("topic", pipeline.output).start()


def test_append_is_not_taken_for_micro_batch(pipeline: Pipeline) -> None:
    """A query with `append` is handed to Spark with another trigger than it runs with."""
    rows = (
        pipeline.rows().withColumn("at", F.expr("timestamp_micros(sent_ns div 1000)")).withWatermark("at", "1 second")
    )
    sessions = rows.groupBy(F.session_window("at", "5 seconds"), "key").count()
    writer = pipeline.writer(sessions.select(F.to_json(F.struct("key", "count")).alias("value")), SINK)
    query = writer.option("topic", pipeline.output).outputMode("append").trigger(realTime=EPOCH).start()  # type: ignore[call-overload]
    assert query.isActive


def test_a_null_topic_and_a_row_that_is_too_large(pipeline: Pipeline) -> None:
    pipeline.send(range(1))
    nowhere = start(pipeline, pipeline.raw().withColumn("topic", F.lit(None).cast("string")))
    with pytest.raises(StreamingQueryException, match="TAILRACE_BAD_SINK_COLUMNS"):
        nowhere.awaitTermination(SOON_S)
    large = start(pipeline, pipeline.raw().select(F.repeat("value", 100_000).alias("value")), topic=pipeline.output)
    with pytest.raises(StreamingQueryException, match="TAILRACE_RECORD_NOT_WRITTEN") as failed:  # noqa: PT012
        while large.isActive:
            # A failed send is noticed at the next row.
            pipeline.send(range(1))
            large.awaitTermination(1)
        large.awaitTermination()
    assert f"topic '{pipeline.input}', partition" in str(failed.value)


def test_a_task_that_is_repeated_looks_what_is_there(
    new_session: Callable[..., SparkSession], kafka: EmbeddedKafka, checkpoint: Path, tmp_path: Path
) -> None:
    """Spark repeats a task of a stateless query within the epoch, from its first record on."""
    pipeline = Pipeline(new_session("local[6,4]"), kafka, checkpoint)
    failed = tmp_path / "failed"

    def fails_once(value: str) -> str:
        if json.loads(value)["id"] == 25 and not failed.exists():
            failed.touch()
            raise ValueError("once")
        return value

    rows = pipeline.raw().select(udf(fails_once)("value").alias("value"))
    query = start(pipeline, rows, topic=pipeline.output)
    for first in range(0, 40, 5):
        pipeline.send(range(first, first + 5))
        until(has_written(pipeline, pipeline.output, first + 5), "rows")
    assert failed.exists()
    assert query.isActive
    ids = Counter(json.loads(message.value() or b"")["id"] for message in messages(pipeline, pipeline.output))
    assert ids == Counter(range(40))


def test_a_task_that_is_repeated_when_the_epoch_is_over(
    new_session: Callable[..., SparkSession], kafka: EmbeddedKafka, checkpoint: Path, tmp_path: Path
) -> None:
    """What it had written comes again in the next epoch, behind what others have written and committed."""
    pipeline = Pipeline(new_session("local[6,4]", {"spark.tailrace.warmup.epochs": "0"}), kafka, checkpoint)
    failed = tmp_path / "failed"

    def fails_late(value: str) -> str:
        if json.loads(value)["id"] == 30 and not failed.exists():
            time.sleep(8)  # noqa: TID251 (a user's slow function)
            failed.touch()
            raise ValueError("once")
        return value

    rows = pipeline.raw().select(udf(fails_late)("value").alias("value"))
    start(pipeline, rows, epoch="5 seconds", topic=pipeline.output)
    commits = until(lambda: pipeline.log("commits"), "an epoch")
    until(lambda: len(pipeline.log("commits")) > len(commits), "the next begins")
    pipeline.send(range(30))
    until(has_written(pipeline, pipeline.output, 30), "rows")
    pipeline.send(range(30, 31))
    until(failed.exists, "the task is repeated")
    pipeline.send(range(31, 40))
    until(lambda: {*range(40)} <= {*ids_in(pipeline)}, "all rows")
    after = len(pipeline.log("commits"))
    until(lambda: len(pipeline.log("commits")) >= after + 2, "two more epochs")
    assert Counter(ids_in(pipeline)) == Counter(range(40))


# On a machine that does much else, the record may come too late all the same.
@pytest.mark.chaos
def test_records_that_a_killed_writer_had_under_way_are_waited_for(pipeline: Pipeline) -> None:
    """A broker may have them before the new run looks, and store them after it has begun to."""
    rows = pipeline.raw().select("value")
    query = start(pipeline, rows, topic=pipeline.output)
    for number in range(5):
        pipeline.send(range(number, number + 1))
        until(has_written(pipeline, pipeline.output, number + 1), "rows")
    query.stop()
    producer = Producer({"bootstrap.servers": pipeline.servers, "linger.ms": 0})
    sent, came_in_time = 5, False
    while not came_in_time and sent < 10:
        pipeline.send(range(sent, sent + 1))
        value, headers = under_way(pipeline, sent)
        producer.list_topics(pipeline.output)  # connects it
        owner = pipeline.checkpoint / "tailrace-sink" / "run"
        before = owner.read_text()
        again = start(pipeline, rows, topic=pipeline.output)
        until(lambda: owner.read_text() != before, "the new run is about to look")  # noqa: B023
        began = time.monotonic()
        let_pass(0.5)  # it has asked where the topic ends
        producer.produce(pipeline.output, value, headers=[*headers])
        producer.flush()
        # On a machine that stands still for long it is too late, and comes twice as it must.
        came_in_time = time.monotonic() - began < 1.5
        sent += 1
        pipeline.send(range(sent, sent + 1))
        until(lambda: sent in ids_in(pipeline), "the next row")  # noqa: B023
        again.stop()
        sent += 1
    late = sent - 2
    assert Counter(ids_in(pipeline))[late] == 1
    assert set(ids_in(pipeline)) == set(range(sent))


def under_way(pipeline: Pipeline, number: int) -> tuple[bytes, list[tuple[str, bytes | None]]]:
    """As the last writer would have written the record next."""
    inputs = all_messages(pipeline.servers, pipeline.input)
    source = next(one for one in inputs if json.loads(one.value() or b"")["id"] == number)
    row = headers_of(messages(pipeline, pipeline.output)[-1])["tailrace-row"].split("/")
    headers: list[tuple[str, bytes | None]] = [
        ("tailrace-source", f"{source.topic()}/{source.partition()}/{source.offset()}".encode()),
        ("tailrace-row", "/".join([*row[:-1], str(int(row[-1]) + 1)]).encode()),
    ]
    value = source.value() or b""
    return value, sealed(secret_of(pipeline.checkpoint), pipeline.output, value, headers)
